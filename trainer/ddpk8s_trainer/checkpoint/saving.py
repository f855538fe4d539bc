"""One save, from the staged bytes to the published directory; in the background or in the caller's thread."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch.distributed.checkpoint.default_planner import DefaultSavePlanner

from ddpk8s_trainer.checkpoint import manifest as manifests
from ddpk8s_trainer.checkpoint.directory import JobDirectory
from ddpk8s_trainer.checkpoint.manifest import Manifest
from ddpk8s_trainer.checkpoint.plan import ObjectExtent, Share, object_file, tensor_file
from ddpk8s_trainer.checkpoint.ranks import AbandonedError, Ranks
from ddpk8s_trainer.checkpoint.space import error_in_words, figures
from ddpk8s_trainer.checkpoint.writing import FileEntry, write_file

# torch.distributed.checkpoint's name of the description of a checkpoint.
METADATA = ".metadata"


@dataclass(frozen=True)
class Saved:
    """A save that is over.

    Attributes:
        step: The optimizer step.
        seconds: From the call of `save` until the checkpoint was complete on all ranks.
        stalled: Seconds of these in which this rank's training stood still.
        bytes: Size of the checkpoint, of all ranks; 0 when it failed.
        best: Whether it was saved as the best one so far.
        error: None, or why there is no such checkpoint; the same text on all ranks.
    """

    step: int
    seconds: float
    stalled: float
    bytes: int
    best: bool
    error: str | None = None


@dataclass(frozen=True)
class Request:
    """What is to be saved, the same on all ranks; `number` counts the saves."""

    number: int
    step: int
    best: bool
    metadata: dict[str, Any]
    run_id: str


@dataclass
class Retention:
    """What stays in the job directory: the newest valid checkpoints, and the best one."""

    keep: int
    best: int | None = None
    invalid: set[int] = field(default_factory=set)

    def saved(self, step: int, best: bool) -> None:
        """A checkpoint is complete."""
        self.invalid.discard(step)
        if best:
            self.best = step


class Save:
    """The part of one rank in one save."""

    def __init__(
        self, ranks: Ranks, directory: JobDirectory, request: Request, retention: Retention, share: Share
    ) -> None:
        self._ranks, self._directory, self._request = ranks, directory, request
        self._retention, self._share = retention, share
        self._objects = b""
        self._extents: list[ObjectExtent] = []
        self._error: str | None = None

    def stage(self, planner: DefaultSavePlanner) -> None:
        """Copy this rank's share of the state, after which the state may change."""
        try:
            self._objects, self._extents = self._share.stage(planner)
        except Exception as error:  # told to all ranks, who are waiting for this one's part
            self._error = f"rank {self._ranks.rank} could not copy its share: {type(error).__name__}: {error}"

    def run(self, stop: threading.Event, longest_pause: float, wrote: Callable[[], None]) -> dict[str, Any]:
        """Write, and publish or clean up. Every rank returns the same: `error`, `bytes`, `notes`.

        Args:
            stop: Gives up waiting for other ranks when set.
            longest_pause: Between two looks for their answers, in seconds.
            wrote: Called after every piece written.
        """
        try:
            self._ranks.post(self._key(self._ranks.rank), self._write(wrote))
            if self._ranks.rank > 0:
                return self._ranks.take(self._key("outcome"), stop, longest_pause)
            outcome = self._lead(stop, longest_pause)
            self._ranks.post(self._key("outcome"), outcome)
            return outcome
        except AbandonedError:
            return _failed("given up, because the training ended before it was complete")
        except Exception as error:  # the store is gone, and with it the other ranks
            return _failed(f"rank {self._ranks.rank}: {type(error).__name__}: {error}")

    def _write(self, wrote: Callable[[], None]) -> dict[str, Any]:
        rank, partial = self._ranks.rank, self._directory.partial(self._request.step)
        files: dict[str, tuple[int, str]] = {}
        error, of_volume = self._error, False
        try:
            image = self._share.image
            if error is None and image.size:
                path = partial / tensor_file(rank)
                entry = write_file(path, image.buffer, direct=True, wrote=wrote)
                files[tensor_file(rank)] = (entry.size, entry.hash)
            if error is None and self._objects:
                entry = write_file(partial / object_file(rank), self._objects, wrote=wrote)
                files[object_file(rank)] = (entry.size, entry.hash)
        except OSError as problem:
            error = f"rank {rank} could not write {problem.filename}: {error_in_words(problem)}"
            of_volume = True
        except Exception as problem:  # told to all ranks, who are waiting for this one's part
            error = f"rank {rank} could not write its share: {type(problem).__name__}: {problem}"
        size = self._share.image.size + len(self._objects)
        return {
            "error": error,
            "files": files,
            "objects": self._extents,
            "size": size,
            "of_volume": of_volume,
        }

    def _lead(self, stop: threading.Event, longest_pause: float) -> dict[str, Any]:
        try:
            return self._conclude(stop, longest_pause)
        except AbandonedError:
            raise
        except Exception as error:  # the other ranks are waiting for an outcome
            return _failed(f"rank 0: {type(error).__name__}: {error}")

    def _conclude(self, stop: threading.Event, longest_pause: float) -> dict[str, Any]:
        """Rank 0: hear all ranks, then publish or clean up."""
        keys = [self._key(rank) for rank in range(self._ranks.world)]
        answers = [self._ranks.take(key, stop, longest_pause) for key in keys]
        # Everybody is past the save before this one.
        self._ranks.forget([*keys, f"{self._request.number - 1}/outcome"])
        error, of_volume = next(((a["error"], a["of_volume"]) for a in answers if a["error"]), (None, True))
        if error is None:
            try:
                return {"error": None, "bytes": self._publish(answers), "notes": self._prune()}
            except OSError as problem:
                where = problem.filename or self._directory.path
                error = f"rank 0 could not write {where}: {error_in_words(problem)}"
        self._directory.discard_partial(self._request.step)
        if of_volume:
            error += "; " + figures(self._directory.path, sum(answer["size"] for answer in answers))
        return _failed(error)

    def _publish(self, answers: list[dict[str, Any]]) -> int:
        partial = self._directory.partial(self._request.step)
        files = {name: FileEntry(*entry) for answer in answers for name, entry in answer["files"].items()}
        description = self._share.describe([answer["objects"] for answer in answers])
        files[METADATA] = write_file(partial / METADATA, description)
        manifest = Manifest(
            step=self._request.step,
            run_id=self._request.run_id,
            world_size=self._ranks.world,
            best=self._request.best,
            metadata=self._request.metadata,
            files=files,
        )
        write_file(partial / manifests.NAME, manifest.encode())
        self._directory.publish(self._request.step)
        return manifest.size

    def _prune(self) -> list[str]:
        keep = self._retention
        best = self._request.step if self._request.best else keep.best
        invalid = keep.invalid - {self._request.step}
        try:
            self._directory.prune(self._request.step, keep.keep, best, invalid)
        except OSError as problem:
            return [f"an old checkpoint could not be deleted: {error_in_words(problem)}: {problem.filename}"]
        return []

    def _key(self, what: str | int) -> str:
        return f"{self._request.number}/{what}"


def _failed(error: str) -> dict[str, Any]:
    return {"error": error, "bytes": 0, "notes": []}
