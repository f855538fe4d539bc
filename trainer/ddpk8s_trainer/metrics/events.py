"""Append-only files of JSON Lines that survive a kill at any byte.

An event goes out in one unbuffered write, so that a killed process leaves at most one torn line, the last.
Readers pass over it, and the next writer cuts it off.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from ddpk8s_trainer.errors import ConfigurationMistake
from ddpk8s_trainer.metrics.figures import json_value

Event = dict[str, Any]
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def parse_event(line: bytes) -> Event | None:
    """Return the event on a line, or None if it is torn or no event at all."""
    if not line.endswith(b"\n"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    if b"NaN" in line or b"Infinity" in line:
        # Only at the top, where numbers live: a list may hold a label that is called NaN.
        for key, value in event.items():
            if isinstance(value, str) and value in _NUMBERS:
                event[key] = _NUMBERS[value]
    return event


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a file, passing over lines that cannot be read; none if it is missing."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if (event := parse_event(line)) is not None:
                yield event


def last_seen(path: Path) -> dict[str, Any]:
    """Return `lastStep` and `lastTime` (Unix, seconds) of a file of metrics; empty if it cannot be read."""
    passed = _Passed(0)
    try:
        for event in read_events(path):
            passed.keeps(event)
    except OSError:
        return {}
    return {"lastStep": passed.last_step, "lastTime": passed.last_time}


@dataclass(frozen=True, slots=True)
class Cut:
    """What a cut found.

    Attributes:
        lines: Number of lines cut.
        last_step: Newest step in the file before the cut; 0 if none.
        last_time: Unix time of the newest event before the cut, in seconds; None if there was none.
        reached: Unix time at which the step of the cut was reached; None if that is not known.
    """

    lines: int
    last_step: int
    last_time: float | None
    reached: float | None


class EventLog:
    """One writer's view of such a file."""

    def __init__(self, path: Path) -> None:
        """Open a file, which is made if need be.

        Raises:
            ConfigurationMistake: the file cannot be written.
        """
        self.path = path
        self._lock = Lock()
        self._torn = False
        self._failed = False
        with _explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _cut_torn_line(path)
            self._file = path.open("ab", buffering=0)

    def append(self, event: Event) -> None:
        """Write one event as one line.

        A full disk does not end a training for want of a line: it is said once and the line is lost.
        """
        line = json.dumps(json_value(event), allow_nan=False, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            if self._torn:
                line = b"\n" + line
            try:
                written, problem = self._file.write(line), "short write"
            except OSError as error:
                written, problem = 0, str(error.strerror)
            self._torn = self._torn if written == 0 else written < len(line)
            if written < len(line) and not self._failed:
                sys.stderr.write(f"cannot write {self.path}: {problem}; lines of it are lost\n")
            self._failed = written < len(line)

    def cut_after(self, step: int | None) -> Cut:
        """Remove every event of a later step, atomically; None removes all.

        Checkpoint lines are written when a save completes, after lines of later steps: hence a filter, not a
        truncation.

        Raises:
            ConfigurationMistake: the file cannot be written.
        """
        passed = _Passed(-1 if step is None else step)
        with self._lock, _explained(self.path):
            lines = _rewrite(self.path, passed.keeps)
            self._file.close()
            self._file = self.path.open("ab", buffering=0)
        return Cut(lines, passed.last_step, passed.last_time, passed.reached())

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        self._file.close()


class _Passed:
    """Remembers, line by line, when the step of the cut was reached."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.last_step = 0
        self.last_time: float | None = None
        self._before: tuple[int, float] | None = None
        self._after: tuple[int, float] | None = None

    def keeps(self, event: Event) -> bool:
        step, time = int(event.get("step", 0)), float(event.get("time", 0.0))
        self.last_step = max(self.last_step, step)
        self.last_time = max(self.last_time or 0.0, time)
        if event["event"] == "step":
            if step <= self.step:
                self._before = step, time
            elif self._after is None:
                self._after = step, time
        return step <= self.step

    def reached(self) -> float | None:
        """Interpolate between the logged steps around the cut, since not every step has a line."""
        if self._before is None or self._after is None:
            return self._before[1] if self._before else None
        (step, time), (later_step, later_time) = self._before, self._after
        return time + (later_time - time) * (self.step - step) / (later_step - step)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationMistake(
            f"cannot write {path}: {error.strerror}",
            hint="the directory at training.checkpoint.directory must be writable and have room",
        ) from error


def _cut_torn_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = size = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            at = file.read(end - start).rfind(b"\n")
            if at >= 0:
                end = start + at + 1
                break
            end = start
        if end < size:
            file.truncate(end)


def _rewrite(path: Path, keeps: Callable[[Event], bool]) -> int:
    """Replace the file by one with the events that `keeps` wants; return the number of lines dropped."""
    dropped = 0
    partial = path.with_name(f".partial-{path.name}")
    with path.open("rb") as old, partial.open("wb") as new:
        for line in old:
            event = parse_event(line)
            if event is not None and keeps(event):
                new.write(line)
            else:
                dropped += 1
        new.flush()
        os.fsync(new.fileno())
    partial.replace(path)
    return dropped
