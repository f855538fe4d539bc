"""The command `ddpk8s`: finds the verb's module, and turns errors into exit codes.

0 done · 1 something failed · 2 invalid spec or usage · 70 a bug of ours · 130 interrupted
"""

import io
import os
import sys
from typing import NoReturn

from ddpk8s.errors import DdpError, SpecErrors

EXIT_BUG = 70
EXIT_INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line and exit."""
    sys.exit(_guard())


def _guard() -> int:
    """Run the command line; return its exit code, whatever happens."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 is no reason to fail
    try:
        from ddpk8s.cli.verbs import make_command  # not at the top: Ctrl-C while it loads is clean, too

        try:
            make_command().main(prog_name="ddpk8s")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        else:
            code = 0
    except DdpError as failure:
        prefix = "" if isinstance(failure, SpecErrors) else "error: "
        return _say(f"{prefix}{failure}", failure.exit_code)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception:
        import traceback

        traceback.print_exc()
        return _say(
            "error: this is a bug of ddpk8s, not of yours: please report it with the text above", EXIT_BUG
        )
    return code


def _say(text: str, code: int) -> int:
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code
