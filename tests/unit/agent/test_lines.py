"""Growing files as lines."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ddpk8s_agent.tail import LONGEST_LINE, LineSplitter, Tail, last_lines


def split(*chunks: bytes, now: float = 0.0) -> list[str]:
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk, now)]
    return lines + splitter.flush()


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))), st.data())
def test_lines_are_the_same_however_the_bytes_arrive(lines: list[str], data: st.DataObject) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    cut = data.draw(st.integers(0, len(content)))
    assert split(content[:cut], content[cut:]) == lines


def test_carriage_returns_show_what_a_terminal_shows() -> None:
    assert split(b"\r 10%", b"\r 20%", b"\r100%\n", now=-1.0) == ["100%"]
    assert split(b"windows\r", b"\nlines\r\n") == ["windows", "lines"]


def test_a_progress_bar_without_newline_shows_a_state_every_ten_seconds() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"\r 1%\r 2%\r 3%", 100.0) == [" 2%"]
    assert splitter.feed(b"\r 4%\r 5%", 105.0) == []
    assert splitter.feed(b"\r 6%\r 7%", 111.0) == [" 6%"]
    assert splitter.flush() == [" 7%"]


def test_a_line_without_end_comes_in_pieces_that_do_not_cut_characters() -> None:
    text = "ä" * LONGEST_LINE + "\n"
    pieces = split(b"x" + text.encode()[:100_001], text.encode()[100_001:])
    assert "".join(pieces) == "x" + text.strip()
    assert max(len(piece.encode()) for piece in pieces) <= LONGEST_LINE


def test_a_million_overwritten_states_stay_small() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"\rfirst\rsecond", 0.0) == ["first"]
    for _ in range(1000):
        assert splitter.feed(b"\r" + b"#" * 1000, 1.0) == []
    assert len(splitter.flush()[0]) == 1000


def test_a_renamed_file_is_followed_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntw")
    tail = Tail(path)
    assert tail.read(0.0) == ["one"]
    path.rename(tmp_path / "b.log")
    with (tmp_path / "b.log").open("ab") as file:
        file.write(b"o\nthree")
    assert tail.drain(0.0) == ["two", "three"]


def test_last_lines_skip_blank_ones_and_stay_in_the_window(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"first\n" + b"y" * 200 + b"\nlast \xff\n\n")
    assert last_lines(path, 2, window=50) == ["y" * 41, "last \ufffd"]
    assert last_lines(tmp_path / "none.log", 2) == []
