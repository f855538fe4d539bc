"""The newest valid checkpoint, agreed by all ranks."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ddpk8s_trainer.checkpoint.directory import JobDirectory, step_name
from ddpk8s_trainer.checkpoint.manifest import InvalidCheckpointError, Manifest
from ddpk8s_trainer.checkpoint.ranks import Ranks
from ddpk8s_trainer.checkpoint.usable import check_usable, mistake_of, raise_first
from ddpk8s_trainer.checkpoint.verify import check_content, check_structure
from ddpk8s_trainer.errors import CheckpointMistake

Resume = Literal["run", "auto", "never"]


@dataclass(frozen=True)
class Found:
    """A valid checkpoint.

    Attributes:
        step: The optimizer step.
        path: Its directory.
        metadata: What the trainer gave to `save`.
        run_id: The run that wrote it.
        world_size: Number of ranks that wrote it.
        per_rank: Whether `load` gives each rank its own `per_rank` entry back: for the same number of ranks.
        rejected: Newer ones that are not valid: name and reason.
    """

    step: int
    path: Path
    metadata: dict[str, Any]
    run_id: str
    world_size: int
    per_rank: bool
    rejected: list[tuple[str, str]]


@dataclass(frozen=True)
class Seen:
    """Something named like a checkpoint; `manifest` is None when it is not one, for this `reason`."""

    step: int
    manifest: Manifest | None
    reason: str

    @property
    def best(self) -> bool:
        """Whether it was the best one when it was saved."""
        return self.manifest is not None and self.manifest.best


@dataclass
class Search:
    """What all ranks learn of the job directory: candidates, newest first, and notes for people."""

    seen: list[Seen] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    mistake: CheckpointMistake | None = None
    found: Found | None = None
    best: int | None = None

    @property
    def invalid(self) -> set[int]:
        """Steps of what is not a valid checkpoint."""
        return {seen.step for seen in self.seen if seen.manifest is None}


def search(ranks: Ranks, directory: JobDirectory, run_id: str, resume: Resume) -> Search:
    """Tidy the job directory and find the newest valid checkpoint. Collective.

    Raises:
        CheckpointMistake: On every rank, when the directory cannot be used, or no checkpoint in it is valid.
    """
    check_usable(ranks, directory.path)
    result = Search()
    if ranks.rank == 0:
        result.mistake = mistake_of(lambda: _tidy(directory, run_id, resume, result), directory.path)
    result = ranks.broadcast(result)
    raise_first([result.mistake])
    _verify(ranks, directory, result)
    if result.found is None and result.seen:
        raise _nothing_valid(directory.path, result.seen, resume)
    return result


def _nothing_valid(path: Path, seen: list[Seen], resume: Resume) -> CheckpointMistake:
    lines = [f"\n  {step_name(each.step)}: {each.reason}" for each in seen]
    fresh = f"start a new run (`ddpk8s run --fresh`), which moves them to {path}/archive"
    return CheckpointMistake(
        f"no checkpoint in {path} is valid:{''.join(lines)}",
        hint=f"restore one of them, or {'move them away' if resume == 'auto' else fresh}",
    )


def _verify(ranks: Ranks, directory: JobDirectory, result: Search) -> None:
    """Check contents from the newest on, until one is right, and the best one; each rank reads a part."""
    rejected: list[tuple[str, str]] = []
    for position, seen in enumerate(result.seen):
        wanted = result.found is None or (result.best is None and seen.best)
        if not wanted:
            continue
        reason = _problem(ranks, directory, seen)
        if reason is None and seen.manifest is not None:
            result.found = result.found or _found(directory, seen.manifest, ranks, rejected)
            result.best = seen.step if result.best is None and seen.best else result.best
            continue
        result.seen[position] = Seen(seen.step, None, str(reason))
        if result.found is None:
            rejected.append((step_name(seen.step), str(reason)))
        else:
            result.notes.append(f"{step_name(seen.step)}, once the best, is not valid: {reason}")


def _problem(ranks: Ranks, directory: JobDirectory, seen: Seen) -> str | None:
    """Why a candidate is not valid, the same on every rank."""
    if seen.manifest is None:
        return seen.reason
    parts = ranks.gather(_content_problem(directory, seen.manifest, ranks))
    return next((part for part in parts if part), None)


def _found(
    directory: JobDirectory, manifest: Manifest, ranks: Ranks, rejected: list[tuple[str, str]]
) -> Found:
    return Found(
        step=manifest.step,
        path=directory.step(manifest.step),
        metadata=manifest.metadata,
        run_id=manifest.run_id,
        world_size=manifest.world_size,
        per_rank=manifest.world_size == ranks.world,
        rejected=rejected,
    )


def _content_problem(directory: JobDirectory, manifest: Manifest, ranks: Ranks) -> str | None:
    try:
        check_content(directory.step(manifest.step), manifest, ranks.rank, ranks.world)
    except InvalidCheckpointError as error:
        return str(error)
    return None


def _tidy(directory: JobDirectory, run_id: str, resume: Resume, result: Search) -> None:
    """Clean up after a process that died, move other runs' checkpoints away, list the rest. Rank 0 only."""
    for name in directory.sweep():
        result.notes.append(f"removed {name}, which was not complete")
    if resume != "auto":
        for owner, steps in _foreign(directory, run_id, resume).items():
            home = directory.archive(steps, owner)
            names = ", ".join(step_name(step) for step in steps)
            result.notes.append(f"moved {names} of {'run ' + owner if owner else 'an unknown run'} to {home}")
    directory.set_owner(run_id)
    result.seen = [_look(directory, step) for step in reversed(directory.steps())]


def _foreign(directory: JobDirectory, run_id: str, resume: Resume) -> dict[str, list[int]]:
    """Steps to move away, by the run that wrote them; an empty name where that cannot be told.

    What has no readable manifest is taken to be of the run that was here last, or else of this one: then it is
    not moved but rejected by name.
    """
    foreign: dict[str, list[int]] = {}
    for step in directory.steps():
        owner = _owner(directory, step) or directory.owner()
        if owner != run_id and (owner or resume == "never"):
            foreign.setdefault(owner or "", []).append(step)
    return foreign


def _look(directory: JobDirectory, step: int) -> Seen:
    try:
        return Seen(step, check_structure(directory.step(step), step), "")
    except InvalidCheckpointError as error:
        return Seen(step, None, str(error))


def _owner(directory: JobDirectory, step: int) -> str | None:
    try:
        return Manifest.read(directory.step(step)).run_id
    except InvalidCheckpointError:
        return None
