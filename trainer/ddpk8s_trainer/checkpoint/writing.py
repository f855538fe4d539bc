"""Bytes to disk: in large pieces, hashed from memory on the way, flushed before anybody counts on them."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import xxhash

from ddpk8s_trainer.beats import beat

# Large enough that Python is entered rarely (each entry takes the GIL from the training),
# small enough that a piece does not keep a disk busy for seconds.
PIECE = 32 << 20
# What a file system answers that cannot do direct I/O at all.
_NO_DIRECT = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)
# What a file system answers when it cannot flush a directory (NFS, FUSE); it has its own order of things.
_NO_DIRECTORY_FLUSH = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM)


@dataclass(frozen=True)
class FileEntry:
    """Size in bytes and xxh3_128 hash (hexadecimal) of a file."""

    size: int
    hash: str


def _nothing() -> None:
    pass


def write_file(
    path: Path, data: memoryview | bytes, *, direct: bool = False, wrote: Callable[[], None] = _nothing
) -> FileEntry:
    """Write a new file and flush it to the device.

    Args:
        path: The file; it must not exist.
        data: Its content. For `direct`, page-aligned memory of whole pages.
        direct: Write past the page cache where the file system can. It saves a copy of all data, and the
            kernel's threads that would write the cache back at full priority while the training computes.
        wrote: Called after every piece, as a sign of life.

    Raises:
        OSError: With the path in `filename`.
    """
    try:
        if direct and hasattr(os, "O_DIRECT"):
            try:
                return _write(path, memoryview(data), os.O_DIRECT, wrote)
            except OSError as error:
                if error.errno not in _NO_DIRECT:
                    raise
                path.unlink(missing_ok=True)
        return _write(path, memoryview(data), 0, wrote)
    except OSError as error:
        error.filename = str(path)
        raise


def _write(path: Path, data: memoryview, flags: int, wrote: Callable[[], None]) -> FileEntry:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | flags, 0o644)
    digest = xxhash.xxh3_128()
    try:
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            _write_all(descriptor, piece, start)
            digest.update(piece)
            wrote()
        os.fsync(descriptor)
        wrote()
    finally:
        os.close(descriptor)
    return FileEntry(len(data), digest.hexdigest())


def _write_all(descriptor: int, piece: memoryview, offset: int) -> None:
    done = 0
    while done < len(piece):
        done += os.pwrite(descriptor, piece[done:], offset + done)


def flush_directory(path: Path) -> None:
    """Make names in a directory durable, as far as its file system can.

    Raises:
        OSError: An error of the device.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_FLUSH:
            raise
    finally:
        os.close(descriptor)


def hash_file(path: Path) -> str:
    """The xxh3_128 hash (hexadecimal) of a file's content."""
    digest = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE):
            digest.update(piece)
            beat()
    return digest.hexdigest()
