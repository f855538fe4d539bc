"""Directories of the token cache: written beside, renamed into place, and never used torn.

`meta.json` lists every other file with its size. It is written last, and the directory gets its name after
that; so a directory whose files have the sizes of its `meta.json` is whole. Several nodes may make the same
directory at once: the first to rename wins, the others throw theirs away.
"""

import errno
import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddpk8s_trainer.errors import DataMistake

META = "meta.json"
PARTIAL = ".partial-"
PARTIAL_SECONDS = 24 * 3600  # older ones are left by a crash, not by a running process


@contextmanager
def making(directory: Path) -> Iterator[Path]:
    """Yield an empty directory to fill; when the block ends well, it becomes `directory`.

    Whatever the block leaves in `meta.json` is extended by the file sizes.

    Raises:
        DataMistake: The cache cannot be written: no permission, no room.
    """
    name = f"{PARTIAL}{directory.name}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    partial = directory.parent / name
    try:
        partial.mkdir(parents=True)
        yield partial
        _seal(partial)
        _rename(partial, directory)
    except OSError as error:
        raise DataMistake(
            f"the token cache {directory.parent} cannot be written: {error.strerror or error}",
            hint="set spec.training.data.cacheDirectory to a writable directory with room",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _seal(partial: Path) -> None:
    """Write the sizes of all files into `meta.json` and everything to the disk."""
    meta = read_meta(partial) or {}
    files = sorted(path for path in partial.rglob("*") if path.is_file() and path.name != META)
    meta["files"] = {str(path.relative_to(partial)): path.stat().st_size for path in files}
    (partial / META).write_text(json.dumps(meta, ensure_ascii=False, indent=1), encoding="utf-8")
    for path in [*files, partial / META, partial]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _rename(partial: Path, directory: Path) -> None:
    """Give a whole directory its name, unless another process was faster; a torn one there is removed."""
    for _ in range(10):
        try:
            partial.rename(directory)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        else:
            return
        if is_whole(directory):
            return
        _remove(directory)
    raise OSError(errno.EEXIST, "a torn directory of another process stays in the way", str(directory))


def _remove(directory: Path) -> None:
    """Remove a torn directory; renamed first, so that nobody sees it half gone."""
    aside = directory.with_name(f"{PARTIAL}torn-{uuid.uuid4().hex}")
    try:
        directory.rename(aside)
    except FileNotFoundError:  # another process was faster
        return
    if is_whole(aside):
        # Another process put its own there since we looked; if a third one did so since, that one will do as well.
        with suppress(OSError):
            aside.rename(directory)
    shutil.rmtree(aside, ignore_errors=True)


def read_meta(directory: Path) -> dict[str, Any] | None:
    """Return what `meta.json` holds, or None when it is absent or no JSON object."""
    try:
        meta = json.loads((directory / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return meta if isinstance(meta, dict) else None


def is_whole(directory: Path) -> bool:
    """Return whether every file of a cache directory is there in its full size."""
    meta = read_meta(directory)
    if meta is None or not isinstance(meta.get("files"), dict):
        return False
    try:
        return all((directory / name).stat().st_size == size for name, size in meta["files"].items())
    except OSError:
        return False


def remove_leftovers(cache: Path) -> None:
    """Remove what crashed processes left, once it is a day old."""
    for path in cache.glob(f"{PARTIAL}*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > PARTIAL_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


class TokenDataset:
    """Tokenised samples, memory-mapped: all processes of a node share the pages.

    Attributes:
        tokens: Token ids of all samples, one after the other, uint16 or uint32.
        token_types: Segment ids likewise, uint8, or None when the task has no pairs.
        offsets: Sample ``i`` is ``tokens[offsets[i]:offsets[i + 1]]``, int64 ``[samples + 1]``.
        labels: Label ids, int32 ``[samples]``.
        lengths: Tokens of each sample, special tokens included, int32 ``[samples]``.
        fingerprint: Hash of files, tokenizer and settings that the samples come from.
    """

    def __init__(self, directory: Path | str) -> None:
        """Open a directory that `prepare` made.

        Raises:
            DataMistake: A file is missing or torn.
        """
        self.directory = Path(directory)
        meta = read_meta(self.directory)
        if meta is None or not is_whole(self.directory):
            raise DataMistake(
                f"the token cache {self.directory} is missing or torn",
                hint="remove the directory; the next start makes it again",
            )
        self.fingerprint: str = meta["fingerprint"]
        self.tokens = self._open("tokens", np.dtype(meta["tokenType"]))
        self.token_types = self._open("token_types", np.dtype(np.uint8)) if meta["pairs"] else None
        self.offsets = self._open("offsets", np.dtype(np.int64))
        self.labels = self._open("labels", np.dtype(np.int32))
        self.lengths: NDArray[np.int32] = np.diff(self.offsets).astype(np.int32)

    def _open(self, name: str, kind: np.dtype[Any]) -> NDArray[Any]:
        return np.memmap(self.directory / f"{name}.bin", kind, "r")

    def __len__(self) -> int:
        return len(self.labels)

    def sample(self, index: int) -> NDArray[np.int64]:
        """Return the token ids of a sample, int64 ``[length]``.

        Raises:
            IndexError: There is no such sample.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return self.tokens[self.offsets[index] : self.offsets[index + 1]].astype(np.int64)
