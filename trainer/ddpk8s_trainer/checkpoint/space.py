"""Free space for checkpoints, and sizes and system errors in words."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ddpk8s_trainer.errors import CheckpointMistake


def state_bytes(state: Mapping[str, Any]) -> int:
    """Bytes of all tensors in a nested state, over all ranks (a sharded tensor counts whole)."""
    return sum(_bytes_of(value) for value in state.values())


def _bytes_of(value: object) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, Mapping):
        return sum(_bytes_of(each) for each in value.values())
    if isinstance(value, list | tuple):
        return sum(_bytes_of(each) for each in value)
    return 0


def check_space(directory: Path, state_bytes: int) -> None:
    """Check that two checkpoints fit: an old one is deleted only after the new one is complete.

    Checkpoints already there count as the first of the two.

    Args:
        directory: The job's directory; it need not exist yet.
        state_bytes: Size of one checkpoint, see :func:`state_bytes`.

    Raises:
        CheckpointMistake: There is less free space than that; the message says how much.
    """
    there = any(directory.glob("step-*"))
    needed = state_bytes * (1 if there else 2)
    free = free_bytes(directory)
    if free is not None and free < needed:
        what = "one more checkpoint" if there else "two checkpoints"
        raise CheckpointMistake(
            f"checkpoint directory {directory}: {what} of {in_words(state_bytes)} "
            f"need {in_words(needed)}, {in_words(free)} are free",
            hint="free some space, or set training.checkpoint.directory to a larger volume",
        )


def free_bytes(path: Path) -> int | None:
    """Bytes an ordinary user may still write at `path` or its nearest existing parent; None when unknown."""
    for each in (path, *path.parents):
        try:
            status = os.statvfs(each)
        except OSError:
            continue
        # Some FUSE file systems know no size at all and say 0 of 0.
        return status.f_bavail * status.f_frsize if status.f_blocks else None
    return None


def figures(path: Path, needed: int) -> str:
    """What a checkpoint needs and what is free, for the text of a failed save."""
    free = free_bytes(path)
    space = "an unknown amount is" if free is None else f"{in_words(free)} are"
    return f"the checkpoint needs {in_words(needed)}, {space} free"


def in_words(size: int) -> str:
    """A number of bytes for people: `950 B`, `1.4 GiB`."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def error_in_words(error: OSError) -> str:
    """A system error for people: `No space left on device (ENOSPC, errno 28)`."""
    if error.errno is None:
        return str(error) or type(error).__name__
    name = errno.errorcode.get(error.errno, "unknown")
    return f"{error.strerror or 'system error'} ({name}, errno {error.errno})"
