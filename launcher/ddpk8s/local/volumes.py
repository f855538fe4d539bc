"""Paths below mounts, on a machine that has no mounts: each volume is a directory of its name."""

import posixpath
from pathlib import Path

from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.storage import Volume


class Volumes:
    """The job's mounts, as directories of the directory `base / below`; messages leave `base` out."""

    def __init__(self, job: TrainingJob, base: Path, below: Path) -> None:
        self._job = job
        self._base = base
        self._below = below

    def shown(self, name: str) -> str:
        """Return the directory that stands for a volume, for messages."""
        return str(self._below / name)

    def directory(self, name: str) -> Path:
        """Return the directory that stands for a volume, absolute."""
        return self._base / self._below / name

    def of(self, path: str) -> Volume | None:
        """Return the volume that holds an absolute path, or None."""
        return self._job.spec.volume_of(posixpath.normpath(path)) if path.startswith("/") else None

    def map(self, path: str) -> str:
        """Return a path below a mount as it is here; any other text comes back as it was."""
        volume = self.of(path)
        if volume is None:
            return path
        below = posixpath.relpath(posixpath.normpath(path), volume.mount_path)
        return str(self.directory(volume.name) / below)

    def map_argument(self, argument: str) -> str:
        """Return an argument of a script with its path mapped: `/data/x`, or `--data=/data/x`."""
        option, equals, value = argument.partition("=")
        if equals and option.startswith("-"):
            return f"{option}={self.map(value)}"
        return self.map(argument)
