"""Stands in torchrun's place and hands over what torchrun knows but prints only as prose.

Run by the agent in a process of its own, the only one of ours that imports torch:
`shim.main(["--result", FILE, "--parent", PID, "--notify", FD, "--", *torchrun's arguments])`.

FILE, with the ending .ending, appears as soon as torchrun ends workers because one failed. FILE itself
gets one JSON object: `outcome` (`finished`; `failed` with `failures`, in the order torchrun saw them;
`stopped` by a signal; `error` before or beside the workers) and `closed`, the pids it ended itself after
the first failure. Local ranks that are not among the failures left with 0.
"""

import argparse
import json
import logging
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from ddpk8s_agent.processes import terminate_with_parent


class _ClosedWorkers(logging.Handler):
    """Remembers which workers torchrun ended, from the arguments of its log records; says at once that it does."""

    def __init__(self, ending: Path, notify: int) -> None:
        super().__init__()
        self.pids: list[int] = []
        self._ending, self._notify = ending, notify

    def emit(self, record: logging.LogRecord) -> None:
        if "closing signal" in str(record.msg) and isinstance(record.args, tuple) and record.args:
            self.pids.append(int(str(record.args[0])))
            self._ending.touch()
            with suppress(OSError):
                os.write(self._notify, b"x")  # the agent sleeps


def main(arguments: list[str]) -> int:
    """Run torchrun; return 0 if every worker of this node left with 0."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--notify", type=int, required=True)
    own, torchrun_arguments = parser.parse_known_args(arguments)
    os.set_inheritable(own.notify, False)  # workers have no use for it
    if not terminate_with_parent(own.parent):
        return 1  # the agent died before it could be watched
    closed = _ClosedWorkers(own.result.with_suffix(".ending"), own.notify)
    result = _run(torchrun_arguments[torchrun_arguments[:1] == ["--"] :], closed)
    partial = own.result.with_suffix(".partial")
    partial.write_text(json.dumps({**result, "closed": closed.pids}), encoding="utf-8")
    partial.rename(own.result)
    return 0 if result["outcome"] == "finished" else 1


def _run(arguments: list[str], closed: _ClosedWorkers) -> dict[str, Any]:
    try:
        from torch.distributed import run as torchrun
        from torch.distributed.elastic.multiprocessing.api import SignalException
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    except Exception as error:  # a broken installation: whatever it is, the agent reports it
        return _error(error)
    logging.getLogger("torch.distributed.elastic.multiprocessing").addHandler(closed)
    try:
        torchrun.run(torchrun.parse_args(arguments))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        return {
            "outcome": "failed",
            "failures": [_failure(rank, end) for rank, end in error.failures.items()],
        }
    except SignalException:
        return {"outcome": "stopped"}
    except (Exception, SystemExit) as error:
        return _error(error)
    return {"outcome": "finished"}


def _error(error: BaseException) -> dict[str, Any]:
    traceback.print_exc()
    return {"outcome": "error", "message": f"{type(error).__name__}: {error}"}


def _failure(rank: int, end: Any) -> dict[str, Any]:
    """Return what torchrun knows of one rank; `message` and `traceback` only if it ran under `@record`."""
    message = end.error_file_data.get("message")
    detail = message if isinstance(message, dict) else {}
    return {
        "rank": rank,
        "exitCode": end.exitcode,
        "pid": end.pid,
        "message": detail.get("message"),
        "traceback": detail.get("extraInfo", {}).get("py_callstack"),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
