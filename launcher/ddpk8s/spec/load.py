"""From a file (or standard input) and `--set` to a `TrainingJob`, or to all of its mistakes at once."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import Literal

from ddpk8s.errors import SpecError, SpecErrors
from ddpk8s.spec.document import Document, YamlSyntaxError, parse_document
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.overrides import apply_sets
from ddpk8s.spec.problems import LocatedProblem
from ddpk8s.spec.validate import validate_document

MAX_BYTES = 1024 * 1024
STDIN = "-"


def load_job(
    path: FilePath | str, sets: Sequence[str] = (), warn: Callable[[LocatedProblem], None] | None = None
) -> TrainingJob:
    """Return the job in a file, with `--set` values put in.

    Args:
        path: The file, or ``-`` for standard input.
        sets: Overrides as ``spec.topology.nnodes=4``.
        warn: Called with each warning, `str()` of which is its text; left out, warnings are dropped.

    Raises:
        SpecErrors: mistakes in the file, all at once, each with file, line and column.
        SpecError: the file cannot be read.
    """
    document, directory = read_document(path)
    return load_document(document, sets, warn, directory)


def read_document(path: FilePath | str) -> tuple[Document, FilePath]:
    """Return what a file holds, not yet judged, and the directory from which its paths are taken.

    Raises:
        SpecErrors: it is no YAML that we read.
        SpecError: it cannot be read.
    """
    name = "<stdin>" if str(path) == STDIN else str(path)
    directory = FilePath() if str(path) == STDIN else FilePath(path).parent
    text = _decode(_read(path, name), name)
    try:
        return parse_document(text, name), directory
    except YamlSyntaxError as failure:
        raise SpecErrors([failure.located]) from None


def load_document(
    document: Document,
    sets: Sequence[str] = (),
    warn: Callable[[LocatedProblem], None] | None = None,
    directory: FilePath | None = None,
) -> TrainingJob:
    """Return the job in a document that is read already; code is looked for in `directory`, if given.

    Raises:
        SpecErrors: mistakes in the document.
    """
    apply_sets(document, sets, TrainingJob)
    job, problems = validate_document(document, directory)
    errors = [problem for problem in problems if not problem.problem.warning]
    if job is None or errors:
        raise SpecErrors(errors)
    for problem in problems:
        if warn is not None:
            warn(problem)
    return job


def _read(path: FilePath | str, name: str) -> bytes:
    try:
        if str(path) == STDIN:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with FilePath(path).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SpecError(
            f"{name}: there is no such file", f"`ddpk8s init {name}` writes one to start from"
        ) from None
    except IsADirectoryError:
        raise SpecError(f"{name}: is a directory, but must be a job file") from None
    except (OSError, ValueError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) and failure.strerror else str(failure)
        raise SpecError(f"{name}: cannot be read: {reason.lower()}") from None
    if len(content) > MAX_BYTES:
        hint = (
            "data and code do not belong in it: mount a volume in spec.storage, or set spec.entrypoint.code"
        )
        raise SpecError(f"{name}: is larger than 1 MiB, which no job file needs", hint)
    return content


def _decode(content: bytes, name: str) -> str:
    """Return the text without a byte order mark and with line ends of one kind."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        marks: tuple[Literal[b"\xff\xfe"], Literal[b"\xfe\xff"]] = (b"\xff\xfe", b"\xfe\xff")
        if content.startswith(marks):
            raise SpecError(f"{name}: is UTF-16, but must be UTF-8", "save it as UTF-8") from None
        before = content[: failure.start]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        where = f"{name}:{line}:{column}"
        raise SpecError(
            f"{where}: the byte 0x{content[failure.start]:02x} is no UTF-8", "save it as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
