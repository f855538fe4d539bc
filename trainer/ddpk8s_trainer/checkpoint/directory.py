"""The job directory. Only rank 0 renames and deletes.

    step-%08d/            complete
    .partial-step-%08d/   being written
    .old-step-%08d/       complete, being replaced by a newer save of the same step
    .trash-*              being deleted
    archive/<run id>/     complete checkpoints of earlier runs
    .run-id               the run that opened the directory last

Whatever is deleted is renamed first, so that half a directory never looks like a checkpoint. All it asks of
the file system is that a rename within a directory is atomic for a process that dies; on volumes where even that
does not hold (object stores mounted as directories) the manifest's sizes and hashes tell half from whole.
"""

import contextlib
import re
import shutil
import uuid
from pathlib import Path

from ddpk8s_trainer.checkpoint.writing import flush_directory

_STEP = re.compile(r"step-(\d{8,})")
_OWNER = ".run-id"
_PARTIAL, _OLD, _TRASH = ".partial-", ".old-", ".trash-"


def step_name(step: int) -> str:
    """Name of the directory of a complete checkpoint."""
    return f"step-{step:08d}"


class JobDirectory:
    """The directory with a job's checkpoints."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def step(self, step: int) -> Path:
        """Where the complete checkpoint of a step is."""
        return self.path / step_name(step)

    def partial(self, step: int) -> Path:
        """Where the checkpoint of a step is written."""
        return self.path / f"{_PARTIAL}{step_name(step)}"

    def steps(self) -> list[int]:
        """Steps of everything named like a checkpoint, oldest first."""
        matches = [_STEP.fullmatch(entry.name) for entry in self.path.iterdir()]
        return sorted(int(m[1]) for m in matches if m and step_name(int(m[1])) == m[0])

    def start(self, step: int) -> None:
        """Make the directory a checkpoint is written to.

        Raises:
            OSError: It cannot be made. When the job directory is gone it is not made again: had its volume been
                unmounted, the checkpoints would fill the disk under it.
        """
        path = self.partial(step)
        if path.exists():
            self.delete(path)
        path.mkdir()

    def publish(self, step: int) -> None:
        """Give a completely written checkpoint its name; one of that name is replaced."""
        partial, final, old = self.partial(step), self.step(step), self.path / f"{_OLD}{step_name(step)}"
        flush_directory(partial)
        if final.exists():
            final.rename(old)  # `sweep` takes it back should this process die before the next rename
        try:
            partial.rename(final)
        except OSError:
            if old.exists():
                old.rename(final)
            raise
        flush_directory(self.path)
        if old.exists():
            self.delete(old)

    def delete(self, path: Path) -> None:
        """Delete a directory or file such that nothing of its name is left halfway."""
        trash = self.path / f"{_TRASH}{uuid.uuid4().hex}"
        path.rename(trash)
        _remove(trash)

    def discard_partial(self, step: int) -> None:
        """Remove what a failed save left. It does not matter if that fails too: the next start sweeps."""
        with contextlib.suppress(OSError):
            if self.partial(step).exists():
                self.delete(self.partial(step))

    def prune(self, newest: int, keep: int, best: int | None, invalid: set[int]) -> list[int]:
        """Delete checkpoints older than the `keep` newest valid ones, except the best one.

        Args:
            newest: The step saved last; what is named after later steps was rejected and is not looked at.
            keep: How many valid checkpoints stay.
            best: A step that stays besides.
            invalid: Steps that do not count as kept; they go when they are older than what is kept.

        Returns:
            The steps deleted.

        Raises:
            OSError: Something could not be deleted.
        """
        steps = [step for step in self.steps() if step <= newest]
        oldest_kept = [step for step in steps if step not in invalid][-keep:][0]
        doomed = [step for step in steps if step < oldest_kept and step != best]
        for step in doomed:
            self.delete(self.step(step))
        return doomed

    def archive(self, steps: list[int], run_id: str) -> Path:
        """Move checkpoints of another run away, never over something that is there.

        Returns:
            The directory they are in now.
        """
        home = self.path / "archive" / (re.sub(r"[^\w.-]", "_", run_id).lstrip(".") or "unknown")
        home.mkdir(parents=True, exist_ok=True)
        for step in steps:
            target, number = home / step_name(step), 1
            while target.exists():
                number += 1
                target = home / f"{step_name(step)}.{number}"
            self.step(step).rename(target)
        flush_directory(home)
        flush_directory(self.path)
        return home

    def owner(self) -> str | None:
        """The run that opened the directory last."""
        try:
            return (self.path / _OWNER).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def set_owner(self, run_id: str) -> None:
        """Note which run opened the directory."""
        if self.owner() != run_id:
            (self.path / _OWNER).write_text(run_id, encoding="utf-8")

    def sweep(self) -> list[str]:
        """Clean up after a process that died.

        Unfinished saves and deletions go, a checkpoint that was not replaced after all comes back.

        Returns:
            Names of unfinished checkpoints that were removed.
        """
        unfinished = []
        for entry in sorted(self.path.iterdir()):
            original = self.path / entry.name.removeprefix(_OLD)
            if entry.name.startswith(_OLD) and not original.exists():
                entry.rename(original)
            elif entry.name.startswith((_OLD, _PARTIAL, _TRASH)):
                # A file that cannot be deleted now (open on another NFS client) must not stop the training.
                with contextlib.suppress(OSError):
                    self.delete(entry)
                if entry.name.startswith(_PARTIAL):
                    unfinished.append(entry.name)
        return unfinished


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
