"""Options that several verbs have, and what they mean everywhere."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

EXIT_BROKEN_PIPE = 141
"""As if SIGPIPE had ended us, which is what happens to other tools."""


class Output(StrEnum):
    """Form of what is printed on stdout."""

    text = "text"
    json = "json"


FileArgument = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Job file; `-` reads standard input; by default job.yaml"),
]

FileOption = Annotated[str | None, typer.Option("-f", "--file", metavar="FILE", help="The same as FILE")]

SetOption = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Override a field, as in spec.topology.nnodes=4; repeatable"
    ),
]

OutputOption = Annotated[Output, typer.Option("-o", "--output", help="Form of the output")]


DEFAULT_FILE = Path("job.yaml")
"""What `ddpk8s init` writes; `run` and `validate` take it if no file is given."""


def default_file(usage: str, *, quiet: bool = False) -> str:
    """Return `job.yaml` and say so, for a verb that was given no file.

    Raises:
        BadParameter: it is not there; `usage` says what to write.
    """
    if not DEFAULT_FILE.is_file():
        raise typer.BadParameter(f"give {usage}", param_hint="FILE")
    if not quiet:
        warn(f"no file given: taking {DEFAULT_FILE}")
    return str(DEFAULT_FILE)


def one_file(verb: str, file: str | None, option: str | None, *, quiet: bool) -> str:
    """Return the job file of a verb that takes one, however it was given.

    Raises:
        BadParameter: two were given, or none and there is no `job.yaml`.
    """
    usage = f"one job file, as in `ddpk8s {verb} job.yaml`"
    if file and option:
        raise typer.BadParameter(f"give {usage}", param_hint="FILE")
    return file or option or default_file(usage, quiet=quiet)


def warn(message: object) -> None:
    """Print a warning or a message for people on stderr."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def emit(text: str) -> None:
    """Print data on stdout at once.

    Raises:
        SystemExit: whoever reads has closed the pipe, and has what it wanted.
    """
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # nothing is left to complain at the end
        raise SystemExit(EXIT_BROKEN_PIPE) from None
