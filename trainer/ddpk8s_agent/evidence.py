"""What an attempt left behind: torchrun's table, the trainer's status files, the workers' last lines."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

LastWords = Callable[[int, int], list[str]]
LOG_LINES = 20


@dataclass(frozen=True)
class RankEnd:
    """How one rank ended, unless it left with 0.

    Attributes:
        rank: Global rank.
        exit_code: Exit code; of a signal its negative number.
        pid: Process id it had.
        closed: Whether torchrun or the agent ended it, because another had failed.
        error: Its typed error: `reason`, `message`, `hint`, `step` (bundled trainer), or None.
        exception: `Type: message` from torch's error file (under `@record`), or None.
        traceback: Traceback from there, or None.
        log: Its last lines.
    """

    rank: int
    exit_code: int
    pid: int
    closed: bool = False
    error: dict[str, Any] | None = None
    exception: str | None = None
    traceback: str | None = None
    log: tuple[str, ...] = ()


@dataclass(frozen=True)
class HungRank:
    """A rank when an attempt was ended because nothing moved.

    Attributes:
        rank: Global rank.
        step: Newest step it said it had finished, if any.
        age: Seconds since its last sign of life.
        stopped: Whether it was stopped by a signal (SIGSTOP, a debugger).
        waits: Whether its Python stack waits for other ranks; None if there is no stack.
        stack: Its stack, innermost call first.
    """

    rank: int
    step: int | None = None
    age: float = 0.0
    stopped: bool = False
    waits: bool | None = None
    stack: tuple[str, ...] = ()


Launcher = Literal["finished", "failed", "stopped", "error", "died"]


@dataclass(frozen=True)
class Evidence:
    """How one attempt ended, on one node or, merged, on all of them.

    Attributes:
        launcher: `finished`; `failed` with `ends`; `stopped` by a signal; `error` of its own; or `died`.
        launcher_code: Exit code of torchrun's process; of a signal its negative number.
        launcher_message: What torchrun's own error says.
        launcher_node: On which node that was.
        ranks: Global ranks whose ends are known.
        ends: Ranks that did not leave with 0, in the order in which torchrun saw them.
        stop_requested: Whether we were asked to stop.
        drained: Why the agent ended it, before torchrun did: `lost`, `failure`, `stop`, `hang`, `finish`; or empty.
        step: Newest step seen, if any.
        seconds: How long it took.
        finished: What the trainer says of its result, if it finished.
        stopped: What the trainer says of its stop, if it saved.
        hung: Ranks at the time when the attempt was ended because nothing moved.
        oom: Whether the kernel killed something here because memory ran out.
        nproc: Ranks on each node.
        lost: Nodes that ended without a word, and how (merged only).
        unfinished: Whether it was ended because somebody did not leave after the others had (merged only).
    """

    launcher: Launcher
    launcher_code: int
    ranks: tuple[int, ...]
    ends: tuple[RankEnd, ...] = ()
    launcher_message: str = ""
    launcher_node: int = 0
    stop_requested: bool = False
    drained: str = ""
    step: int | None = None
    seconds: float = 0.0
    finished: dict[str, Any] = field(default_factory=dict)
    stopped: dict[str, Any] = field(default_factory=dict)
    hung: tuple[HungRank, ...] = ()
    oom: bool = False
    nproc: int = 0
    lost: tuple[tuple[int, str], ...] = ()
    unfinished: bool = False

    def node_of(self, rank: int) -> int | None:
        """Return the node of a rank, or None where there is only one."""
        return rank // self.nproc if self.nproc else None


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if there is none, or only half of one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def read_ends(
    result: dict[str, Any], status_directory: Path, last_words: LastWords, signalled: set[int]
) -> tuple[RankEnd, ...]:
    """Return the ends of ranks from the shim's result, with what each rank left behind.

    Args:
        result: The shim's.
        status_directory: The trainer's files.
        last_words: Returns the last lines of a rank.
        signalled: Pids that the agent ended itself.
    """
    closed = set(result.get("closed", ())) | signalled
    return tuple(
        RankEnd(
            rank=failure["rank"],
            exit_code=failure["exitCode"],
            pid=failure["pid"],
            closed=failure["pid"] in closed,
            error=read_json(status_directory / f"rank-{failure['rank']}.error.json") or None,
            exception=failure.get("message"),
            traceback=failure.get("traceback"),
            log=tuple(last_words(failure["rank"], LOG_LINES)),
        )
        for failure in result.get("failures", ())
    )
