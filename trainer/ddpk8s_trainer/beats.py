"""Signs of life for the agent: one small file per rank, written by the thread that does the work.

A rank that is stuck falls silent, and so do those that wait for it in a collective; the agent acts when all of them
have been silent for too long. So nothing here runs by itself, and nothing may beat because time has passed: only
because some work got done.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Literal

from ddpk8s_trainer.reporting import STATUS_VARIABLE

Phase = Literal["loading", "tokenizing", "training", "evaluating", "saving", "exporting", "finished"]

WIDTH = 64  # bytes, newline included: a reader sees the old line or the new one, never a longer one's rest
INTERVAL_SECONDS = 0.5


class BeatFile:
    """The file of one rank; until it is opened, and where it cannot be written, beats cost nothing and do nothing."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._count = self._step = 0
        self._phase: Phase = "loading"
        self._next = 0.0

    def open(self, path: Path) -> None:
        """Write to `path` from now on; a status directory that cannot be used is the agent's affair, not ours."""
        with suppress(OSError):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def beat(self, step: int | None = None, phase: Phase | None = None) -> None:
        """Show that work got done; may be called as often as one likes.

        Args:
            step: The newest finished optimizer step, where it is another one.
            phase: What is being done from now on; a change is written at once, all else twice a second at most.
        """
        if self._descriptor is None:
            return
        if step is not None:
            self._step = step
        changed = phase is not None and phase != self._phase
        self._phase = phase or self._phase
        now = monotonic()
        if not changed and now < self._next:
            return
        self._next = now + INTERVAL_SECONDS
        self._count += 1
        line = json.dumps({"n": self._count, "step": self._step, "phase": self._phase})
        # A full disk must not end a training.
        with suppress(OSError):
            os.pwrite(self._descriptor, f"{line:<{WIDTH - 1}}\n".encode(), 0)

    def close(self) -> None:
        """Beat no more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


# A process is one rank, and signs of life come from the depths of reading, hashing and saving.
_own = BeatFile()


def open_beats(rank: int) -> None:
    """Let this process beat as `rank`; without an agent, nothing."""
    directory = os.environ.get(STATUS_VARIABLE)
    if directory:
        _own.open(Path(directory) / f"rank-{rank}.beat")
        _own.beat()


def beat(step: int | None = None, phase: Phase | None = None) -> None:
    """Show that this rank's work goes on; see `BeatFile.beat`."""
    _own.beat(step, phase)
