"""Files as they come: missing, binary, in another encoding, too large; and standard input."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ddpk8s.errors import SpecError
from ddpk8s.spec.load import MAX_BYTES, load_job

Report = Callable[..., str]


def test_file_is_read_when_it_has_a_byte_order_mark_and_windows_line_ends(report: Report, base: str) -> None:
    assert report(b"\xef\xbb\xbf" + base.replace("\n", "\r\n").encode()) == ""


def test_line_numbers_are_right_when_lines_end_in_windows_fashion(report: Report, base: str) -> None:
    printed = report((base + "    epochs: 0\n").replace("\n", "\r\n").encode())
    assert printed == "job.yaml:13:5: spec.training.epochs is 0, but must be at least 1 epoch"


@pytest.mark.parametrize(
    "wrapped", ["---\n{}", "{}---\n", "{}...\n", "---\n---\n{}---\n", "# first\n{}\n# last\n"]
)
def test_marks_of_empty_documents_are_no_documents(report: Report, base: str, wrapped: str) -> None:
    assert report(wrapped.format(base)) == ""


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# nothing\n", b"---\n", b"\xef\xbb\xbf"])
def test_file_is_refused_when_it_is_empty(report: Report, content: bytes) -> None:
    printed = report(content)
    assert printed == (
        "job.yaml: is empty, but must hold a TrainingJob\n  hint: `ddpk8s init` writes a file to start from"
    )


@pytest.mark.parametrize(
    ("content", "printed"),
    [
        (b"a: 1\nb: \xe9t\xe9\n", "job.yaml:2:4: the byte 0xe9 is no UTF-8\n  hint: save it as UTF-8"),
        ("a: 1".encode("utf-16"), "job.yaml: is UTF-16, but must be UTF-8\n  hint: save it as UTF-8"),
        (b"a" * (MAX_BYTES + 1), "job.yaml: is larger than 1 MiB, which no job file needs\n"
            "  hint: data and code do not belong in it: mount a volume in spec.storage, or set spec.entrypoint.code"),
    ],
)  # fmt: skip
def test_file_is_refused_when_it_is_no_small_utf_8_file(report: Report, content: bytes, printed: str) -> None:
    with pytest.raises(SpecError) as failure:
        report(content)
    assert str(failure.value) == printed
    assert failure.value.exit_code == 2


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x7f", "\ufffe"])
def test_file_is_refused_with_the_line_when_it_holds_a_control_character(
    report: Report, character: str
) -> None:
    code = ord(character)
    assert report(f"a: 1\nb: {character}\n").startswith(
        f"job.yaml:2: holds the character U+{code:04X}, which YAML"
    )


def test_file_of_a_mebibyte_is_read(report: Report, base: str) -> None:
    assert report(base + "#" + " " * (MAX_BYTES - len(base) - 1)) == ""


def test_missing_file_and_directory_are_told(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as failure:
        load_job(tmp_path / "none.yaml")
    name = f"{tmp_path}/none.yaml"
    assert (
        str(failure.value)
        == f"{name}: there is no such file\n  hint: `ddpk8s init {name}` writes one to start from"
    )
    with pytest.raises(SpecError, match=f"{tmp_path}: is a directory, but must be a job file"):
        load_job(tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        load_job("a\0b")


def test_dash_reads_standard_input(base: str) -> None:
    program = "from ddpk8s.spec.load import load_job; print(load_job('-').metadata.name)"
    done = subprocess.run(
        [sys.executable, "-c", program], input=base, capture_output=True, text=True, check=True
    )
    assert done.stdout == "reviews\n"


def test_standard_input_is_named_in_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: [1")))
    with pytest.raises(SpecError, match=r"^<stdin>:1:4: "):
        load_job("-")
