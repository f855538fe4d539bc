"""Keeps a worker's log from filling the node's disk."""

import ctypes
import os
import sys
from pathlib import Path

HEAD_BYTES = 1 << 20
TAIL_BYTES = 64 << 20
_STEP_BYTES = 8 << 20
_FALLOC_FL_KEEP_SIZE, _FALLOC_FL_PUNCH_HOLE = 1, 2


class Bound:
    """Gives the middle of a growing file back to the disk: its beginning and its newest part stay.

    The worker holds the file open and goes on writing where it was, so the file cannot be cut or replaced. A
    hole takes no room and keeps every offset; it reads as zeros. Where there are no holes (not Linux, some
    network file systems), the file stays whole.
    """

    def __init__(
        self, path: Path, head: int = HEAD_BYTES, tail: int = TAIL_BYTES, step: int = _STEP_BYTES
    ) -> None:
        self._path = path
        self._freed = self._head = head
        self._tail, self._step = tail, step
        self._works = sys.platform == "linux"

    def keep(self, position: int) -> None:
        """Free what lies between the head and the newest part; `position` is how far it has been read."""
        end = (position - self._tail) // 4096 * 4096
        if not self._works or end - self._freed < self._step:
            return
        self._works = _punch(self._path, self._freed, end - self._freed)
        self._freed = end


def _punch(path: Path, offset: int, length: int) -> bool:
    """Make a hole in a file; return whether that worked."""
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except OSError:
        return False
    try:
        mode = _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE
        return int(fallocate(descriptor, mode, offset, length)) == 0
    finally:
        os.close(descriptor)
