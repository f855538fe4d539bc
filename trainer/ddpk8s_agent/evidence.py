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
        closed: Whether torchrun ended it, because another had failed.
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
class Evidence:
    """How one attempt ended.

    Attributes:
        launcher: `finished`; `failed` with `ends`; `stopped` by a signal; `error` of its own; or `died`.
        launcher_code: Exit code of torchrun's process; of a signal its negative number.
        launcher_message: What torchrun's own error says.
        ranks: Global ranks of this node.
        ends: Ranks that did not leave with 0, in the order in which torchrun saw them.
        stop_requested: Whether we were asked to stop.
        step: Newest step seen, if any.
        seconds: How long it took.
        finished: What the trainer says of its result, if it finished.
        stopped: What the trainer says of its stop, if it saved.
    """

    launcher: Literal["finished", "failed", "stopped", "error", "died"]
    launcher_code: int
    ranks: tuple[int, ...]
    ends: tuple[RankEnd, ...] = ()
    launcher_message: str = ""
    stop_requested: bool = False
    step: int | None = None
    seconds: float = 0.0
    finished: dict[str, Any] = field(default_factory=dict)
    stopped: dict[str, Any] = field(default_factory=dict)


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if there is none, or only half of one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def read_ends(result: dict[str, Any], status_directory: Path, last_words: LastWords) -> tuple[RankEnd, ...]:
    """Return the ends of ranks from the shim's result, with what each rank left behind."""
    closed = set(result.get("closed", ()))
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
