"""Put a finished directory in the place of an older one, so that a kill at any moment leaves a whole one."""

import os
import shutil
from pathlib import Path


def publish(partial: Path, directory: Path) -> None:
    """Put a checked directory in its place; an older one is renamed away first and removed last."""
    old = _old(directory)
    shutil.rmtree(old, ignore_errors=True)
    if directory.exists():
        directory.rename(old)
    partial.rename(directory)
    _sync_one(directory.parent)
    shutil.rmtree(old, ignore_errors=True)


def settle(directory: Path) -> None:
    """Undo what a kill between the two renames left: the old model goes back to its place."""
    old = _old(directory)
    if old.exists() and not directory.exists():
        old.rename(directory)


def _old(directory: Path) -> Path:
    return directory.with_name(f".old-{directory.name}")


def sync(directory: Path) -> None:
    """Make sure that a directory and its files are on disk before it is renamed."""
    for path in directory.iterdir():
        if path.is_file():
            _sync_one(path)
    _sync_one(directory)


def _sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
