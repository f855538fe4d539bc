"""A log is bounded on disk: sparse files keep their beginning and their end."""

import os
import sys
from pathlib import Path

import pytest

from ddpk8s_agent.bound import Bound
from ddpk8s_agent.tail import Tail

KIB = 1024
BLOCK = 4096

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are no holes to make")


def on_disk(path: Path) -> int:
    return path.stat().st_blocks * 512


def write(path: Path, kib: int) -> None:
    """Append so many numbered lines of 1 KiB, and have them on disk."""
    first = path.stat().st_size // KIB if path.exists() else 0
    with path.open("ab") as file:
        for number in range(first, first + kib):
            file.write(f"{number:0{KIB - 1}}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def bounded(path: Path) -> Bound:
    return Bound(path, head=16 * KIB, tail=64 * KIB, step=32 * KIB)


def test_head_and_tail_stay_and_the_middle_takes_no_room_when_a_log_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    bound, most = None, 0
    for _ in range(50):
        write(path, 20)
        bound = bound or bounded(path)
        bound.keep(path.stat().st_size)
        os.sync()
        most = max(most, on_disk(path))
    assert path.stat().st_size == 1000 * KIB, "offsets stay, for the writer knows nothing of it"
    assert most <= (16 + 64 + 32 + 20) * KIB + 4 * BLOCK
    lines = path.read_bytes().split(b"\n")
    head, tail = path.read_bytes()[: 16 * KIB], path.read_bytes()[-64 * KIB :]
    assert head == b"".join(f"{number:0{KIB - 1}}\n".encode() for number in range(16))
    assert tail == b"".join(f"{number:0{KIB - 1}}\n".encode() for number in range(936, 1000))
    assert b"\0" * 100 in lines[16], "the middle is gone"


def test_nothing_is_freed_that_was_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, 1000)
    bound = bounded(path)
    bound.keep(100 * KIB)
    assert b"\0" * BLOCK not in path.read_bytes(), "not worth a call yet"
    bound.keep(200 * KIB)
    content = path.read_bytes()
    assert content[200 * KIB - 64 * KIB :] == b"".join(f"{n:0{KIB - 1}}\n".encode() for n in range(136, 1000))
    assert content[16 * KIB : 136 * KIB] == b"\0" * 120 * KIB


def test_the_file_stays_whole_when_it_is_small(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, 16 + 64)
    before = path.read_bytes()
    bounded(path).keep(path.stat().st_size)
    assert path.read_bytes() == before


def test_reading_goes_on_where_it_was_when_the_middle_was_freed_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, 300)
    tail, bound = Tail(path), bounded(path)
    lines = tail.read(0.0)
    bound.keep(tail.position)
    write(path, 100)
    lines += tail.drain(1.0)
    assert [int(line) for line in lines] == list(range(400))


def test_the_log_is_left_alone_when_no_hole_can_be_made(tmp_path: Path) -> None:
    bound = bounded(tmp_path / "missing")
    bound.keep(1000 * KIB)
    write(tmp_path / "missing", 1000)
    bound.keep(2000 * KIB)
    assert b"\0" * BLOCK not in (tmp_path / "missing").read_bytes()
