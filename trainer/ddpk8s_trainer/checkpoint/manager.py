"""What the training loop talks to."""

import atexit
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.checkpoint.directory import JobDirectory
from ddpk8s_trainer.checkpoint.finding import Found, Resume, search
from ddpk8s_trainer.checkpoint.loading import load_checkpoint
from ddpk8s_trainer.checkpoint.plan import PER_RANK, Planning, State, pack_per_rank
from ddpk8s_trainer.checkpoint.ranks import Ranks
from ddpk8s_trainer.checkpoint.saving import Request, Retention, Save, Saved
from ddpk8s_trainer.checkpoint.space import error_in_words, figures, state_bytes

# How long `close` waits for a save in flight. `finish` waits for as long as it takes.
CLOSE_SECONDS = 10.0
# How often `finish` looks whether a save in flight got on.
LOOK_SECONDS = 0.5


class _CannotSaveError(Exception):
    """A save that cannot begin, for the same reason on all ranks."""


class CheckpointManager:
    """Saves and finds checkpoints of a job. Every rank has one; all call `open`, `load` and `save` alike.

    A state is a nested dictionary of tensors (replicated, or sharded DTensors) and picklable values. Its
    entry `per_rank`, if any, holds what differs between ranks, such as states of random generators.

    One save is in flight at a time: the next one waits until it is complete, and counts that as `stalled`.
    A save that fails on any rank fails on all, with the same text, and leaves earlier checkpoints as they
    were; it is returned by :meth:`poll`, and training may go on.
    """

    def __init__(
        self,
        directory: Path,
        run_id: str,
        *,
        keep: int,
        asynchronous: bool,
        resume: Resume,
        report: Callable[[str], None],
    ) -> None:
        """Collective.

        Args:
            directory: The job's directory, on a volume all ranks share.
            run_id: Which run this is.
            keep: How many of the newest checkpoints stay; the best one stays besides.
            asynchronous: Write in the background.
            resume: Whose checkpoints :meth:`open` takes: this run's (`run`, `never`) or any run's (`auto`).
            report: Called with messages for people, on rank 0, in the caller's thread: what was moved or
                cleaned up. Failed saves are not reported but returned by :meth:`poll`.
        """
        self._ranks = Ranks()
        self._directory = JobDirectory(directory)
        self._run_id, self._resume = run_id, resume
        self._asynchronous = asynchronous
        self._report = report if self._ranks.rank == 0 else lambda _: None
        self._planning = Planning(self._ranks)
        self._retention = Retention(keep)
        self._number = 0
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        # Pieces that background threads have written.
        self._pieces = 0
        # Filled by the background thread, emptied by the caller's.
        self._finished: deque[Saved] = deque()
        self._notes: deque[str] = deque()
        # A thread that still writes when Python ends may end the process by a signal, and spoil its exit code.
        atexit.register(self.close)

    def open(self) -> Found | None:
        """Tidy the job directory and find the newest valid checkpoint. Collective.

        Unfinished saves are removed; other runs' checkpoints are moved to `archive/<run id>/` unless `resume`
        is `auto`. Nothing else is deleted.

        Returns:
            The same on every rank; None when there is no checkpoint.

        Raises:
            CheckpointMistake: The directory cannot be used, or none of the checkpoints in it is valid.
        """
        result = search(self._ranks, self._directory, self._run_id, self._resume)
        self._retention.best, self._retention.invalid = result.best, result.invalid
        for note in result.notes:
            self._report(note)
        return result.found

    def load(self, found: Found, state: State) -> State:
        """Fill `state` from a checkpoint, in place; see :func:`loading.load_checkpoint`. Collective."""
        return load_checkpoint(self._ranks, found, state)

    def save(
        self, step: int, state: State, metadata: dict[str, Any], *, best: bool = False, wait: bool = False
    ) -> None:
        """Save a checkpoint. Collective; asynchronous, it returns when `state` may change again.

        Args:
            step: The optimizer step; a checkpoint of the same step is replaced.
            state: What is saved, alike on all ranks but for `per_rank` and shards.
            metadata: A dictionary that can be written as JSON; rank 0's is kept.
            best: Whether this is the best state so far, which is kept until there is a better one.
            wait: Wait until it is complete.
        """
        started = time.monotonic()
        self._join()
        try:
            save = self._prepare(step, state, metadata, best)
        except _CannotSaveError as error:
            self._conclude(step, best, started, started, {"error": str(error), "bytes": 0, "notes": []})
            return
        if self._asynchronous and not wait:
            stalled_until = time.monotonic()

            def in_background() -> None:
                _lower_priority()
                outcome = save.run(self._stop, longest_pause=0.1, wrote=self._count_piece)
                self._conclude(step, best, started, stalled_until, outcome)

            self._thread = threading.Thread(target=in_background, name="checkpoint", daemon=True)
            self._thread.start()
        else:
            outcome = save.run(self._stop, longest_pause=0.005, wrote=beat)
            self._conclude(step, best, started, time.monotonic(), outcome)

    def _prepare(self, step: int, state: State, metadata: dict[str, Any], best: bool) -> Save:
        """Agree that all ranks can save, and copy this rank's share.

        Raises:
            _CannotSaveError: On every rank, with the same text.
        """
        self._number += 1
        planner, changed, problem = None, False, ""
        try:
            if PER_RANK in state:
                state = {**state, PER_RANK: pack_per_rank(self._ranks.rank, state[PER_RANK])}
            planner, changed = self._planning.prepare(state)
            metadata = json.loads(json.dumps(metadata))  # a copy, as it will be read back
            if self._ranks.rank == 0:
                self._directory.start(step)
        except OSError as error:
            problem = f"rank {self._ranks.rank} could not write {error.filename}: {error_in_words(error)}"
            problem += "; " + figures(self._directory.path, state_bytes(state))
        except Exception as error:  # every rank must hear of it, whatever it is
            problem = f"{type(error).__name__}: {error}"
        changed, failed = self._ranks.any(changed, bool(problem))
        try:
            if failed or planner is None:
                raise _CannotSaveError(next(each for each in self._ranks.gather(problem) if each))
            share = self._planning.share(planner, renew=changed)
        except (_CannotSaveError, ValueError) as error:
            if self._ranks.rank == 0:
                self._directory.discard_partial(step)
            raise _CannotSaveError(str(error)) from error
        request = Request(self._number, step, best, metadata, self._run_id)
        save = Save(self._ranks, self._directory, request, self._retention, share)
        save.stage(planner)
        return save

    def _conclude(
        self, step: int, best: bool, started: float, stalled_until: float, outcome: dict[str, Any]
    ) -> None:
        self._notes.extend(outcome["notes"])
        if outcome["error"] is None:
            self._retention.saved(step, best)
        seconds, stalled = time.monotonic() - started, stalled_until - started
        self._finished.append(Saved(step, seconds, stalled, outcome["bytes"], best, outcome["error"]))

    @property
    def in_flight(self) -> bool:
        """Whether a save is being written in the background."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def best(self) -> Path | None:
        """The best checkpoint, the same on every rank after :meth:`finish`."""
        step = self._retention.best
        return None if step is None else self._directory.step(step)

    def poll(self) -> list[Saved]:
        """Saves that ended since the last call. Ranks may hear of a save at different times."""
        finished = [self._finished.popleft() for _ in range(len(self._finished))]
        while self._notes:
            self._report(self._notes.popleft())
        return finished

    def finish(self) -> list[Saved]:
        """Wait for the save in flight; saves that ended since the last call."""
        self._join()
        return self.poll()

    def _join(self) -> None:
        if self._thread is None:
            return
        seen = -1
        while self._thread.is_alive():
            # A save that is stuck makes this rank silent, too.
            if self._pieces != seen:
                seen = self._pieces
                beat()
            self._thread.join(LOOK_SECONDS)
        self._thread = None

    def _count_piece(self) -> None:
        self._pieces += 1

    def close(self) -> None:
        """Give memory and connections back. A save in flight is given some seconds, then given up."""
        atexit.unregister(self.close)
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)
            self._stop.set()
            self._thread.join(CLOSE_SECONDS)
            self._thread = None
        self._planning.close()
        self._ranks.close()


def _lower_priority() -> None:
    """Let this thread run only when the training leaves a processor idle."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
