"""A growing file as whole lines: progress bars, endless lines and bytes that are no text included."""

import os
from pathlib import Path

LONGEST_LINE = 64 * 1024
"""Longer lines come in pieces of so many bytes."""
_UPDATE_SECONDS = 10.0
_CHUNK = 1 << 20


class LineSplitter:
    """Cuts a stream of bytes into lines.

    What a progress bar overwrites by carriage returns is shown as a terminal would in the end, and while no
    newline comes, one state of it every ten seconds.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._next_update = 0.0

    def feed(self, data: bytes, now: float) -> list[str]:
        """Return the lines that `data` completes; `now` is in seconds on any clock."""
        *complete, self._rest = (self._rest + data).split(b"\n")
        lines = [piece for line in complete for piece in _pieces(_as_shown(line))]
        return lines + self._update(now) + self._overlong()

    def flush(self) -> list[str]:
        """Return what is left, at the end of the stream."""
        rest, self._rest = self._rest, b""
        return _pieces(_as_shown(rest)) if rest else []

    def _update(self, now: float) -> list[str]:
        """Return a state of a progress bar if one is due, and forget those overwritten."""
        overwritten, carriage_return, rest = self._rest[:-1].rpartition(
            b"\r"
        )  # the last byte may begin a \r\n
        if not carriage_return:
            return []
        state = _as_shown(overwritten)
        if now >= self._next_update and state:
            self._next_update = now + _UPDATE_SECONDS
            self._rest = rest + self._rest[-1:]
            return _pieces(state)
        self._rest = state + b"\r" + rest + self._rest[-1:]
        return []

    def _overlong(self) -> list[str]:
        lines = []
        while len(self._rest) > LONGEST_LINE:
            cut = _character_border(self._rest, LONGEST_LINE)
            lines.append(_text(self._rest[:cut]))
            self._rest = self._rest[cut:]
        return lines


def _as_shown(line: bytes) -> bytes:
    """Return what a terminal shows in the end of a line with carriage returns."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _pieces(line: bytes) -> list[str]:
    pieces = []
    while len(line) > LONGEST_LINE:
        cut = _character_border(line, LONGEST_LINE)
        pieces.append(_text(line[:cut]))
        line = line[cut:]
    return [*pieces, _text(line)]


def _character_border(data: bytes, cut: int) -> int:
    """Return the last position up to `cut` that is not inside a UTF-8 character (of at most 4 bytes)."""
    for position in range(cut, cut - 4, -1):
        if data[position] & 0xC0 != 0x80:
            return position
    return cut


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


class Tail:
    """Follows one file. It may be renamed meanwhile."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._splitter = LineSplitter()
        self.position = 0

    def read(self, now: float) -> list[str]:
        """Return the lines that came, at most a megabyte, so that one loud worker stops nobody else."""
        data = os.read(self._file.fileno(), _CHUNK)
        self.position += len(data)
        return self._splitter.feed(data, now) if data else []

    def drain(self, now: float) -> list[str]:
        """Return everything that is left, the unfinished last line too, and close the file."""
        lines = []
        while data := os.read(self._file.fileno(), _CHUNK):
            lines += self._splitter.feed(data, now)
        self._file.close()
        return lines + self._splitter.flush()


def last_lines(path: Path, count: int, window: int = LONGEST_LINE) -> list[str]:
    """Return the last `count` lines of a file that are not blank, within its last `window` bytes."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - window))
            data = file.read()
    except OSError:
        return []
    lines = [_text(_as_shown(line)) for line in data.split(b"\n")]
    return [line for line in lines if line.strip()][-count:]
