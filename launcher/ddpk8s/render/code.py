"""The code beside a job file, as it goes into every pod: sorted, without what .gitignore leaves out."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ddpk8s.render.archive import File, pack
from ddpk8s.render.errors import RenderProblems
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.problems import Problem, error
from ddpk8s.spec.values import format_bytes

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FIELD = "spec.entrypoint.code"
LIMIT = 900 * 1024
"""Bytes of the archive; a ConfigMap holds 1 MiB, its own fields included."""
_READ_LIMIT = 64 * 1024 * 1024
_NEVER = frozenset((".git", ".ddpk8s", "__pycache__", ".venv", ".ipynb_checkpoints"))
_HINT = "put large files on a volume of spec.storage or into the image, or name them in .gitignore"


def read_code(job: TrainingJob, directory: Path) -> tuple[File, ...] | None:
    """Return the files of `spec.entrypoint.code`; None where the job has none.

    Args:
        job: The job.
        directory: Where the job file lies.

    Raises:
        RenderProblems: they cannot be read, or are too large for a ConfigMap.
    """
    entrypoint = job.spec.entrypoint
    if entrypoint is None or entrypoint.code is None:
        return None
    root = directory / entrypoint.code
    try:
        files = tuple(sorted(_read(root)))
    except OSError as failure:
        reason = (failure.strerror or str(failure)).lower()
        raise RenderProblems([error(FIELD, f"cannot be read: {failure.filename}: {reason}")]) from None
    if problem := _problem_of(files, entrypoint.script):
        raise RenderProblems([problem])
    return files


def _problem_of(files: tuple[File, ...], script: str) -> Problem | None:
    if os.path.normpath(script) not in {file.path for file in files}:
        hint = "a pod gets only what .gitignore lets through"
        return error(FIELD, f"leaves out {script}, the script itself, which .gitignore names", hint)
    size = sum(len(file.content) for file in files)
    if size <= LIMIT or (size <= _READ_LIMIT and len(pack(files)) <= LIMIT):
        return None
    largest = sorted(files, key=lambda file: (-len(file.content), file.path))[:3]
    names = ", ".join(f"{file.path} ({format_bytes(len(file.content))})" for file in largest)
    packed = format_bytes(size) if size > _READ_LIMIT else f"{format_bytes(len(pack(files)))} packed"
    return error(
        FIELD,
        f"is {packed}, but {format_bytes(LIMIT)} is the most that a ConfigMap carries; the largest are {names}",
        _HINT,
    )


def _read(root: Path) -> Iterator[File]:
    """Yield the files below `root`.

    Raises:
        OSError: one of them cannot be read.
    """
    rules = list(_rules_above(root))
    seen: set[str] = set()
    total = 0
    for text, folders, names in os.walk(root, onerror=_raise, followlinks=True):
        place = Path(text)
        seen.add(os.path.realpath(text))
        here = rules + [rule for folder in _between(root, place) for rule in _rules_in(folder)]
        folders[:] = sorted(
            name
            for name in folders
            if name not in _NEVER
            and not _ignored(place / name, here, is_folder=True)
            and os.path.realpath(place / name) not in seen
        )
        for name in sorted(names):
            path = place / name
            if _ignored(path, here) or not path.is_file():
                continue
            if total <= _READ_LIMIT:  # beyond it the answer is no, and sizes are all it needs
                content = path.read_bytes()
                total += len(content)
                yield File(path.relative_to(root).as_posix(), os.access(path, os.X_OK), content)


def _raise(failure: OSError) -> None:
    raise failure


def _between(root: Path, place: Path) -> list[Path]:
    parts = place.relative_to(root).parts
    return [root.joinpath(*parts[:length]) for length in range(len(parts) + 1)]


Rule = tuple[Path, "GitIgnoreSpec"]


def _rules_above(root: Path) -> Iterator[Rule]:
    """Yield the rules of the folders above, outermost first, up to the one that git manages."""
    above: list[Path] = []
    for folder in root.resolve().parents:
        above.insert(0, folder)
        if (folder / ".git").exists():
            break
    else:
        return
    if (root.resolve() / ".git").exists():
        return
    for folder in above:
        yield from _rules_in(folder)


def _rules_in(folder: Path) -> Iterator[Rule]:
    file = folder / ".gitignore"
    if file.is_file():
        from pathspec import GitIgnoreSpec

        yield (
            folder,
            GitIgnoreSpec.from_lines(file.read_text(encoding="utf-8", errors="replace").splitlines()),
        )


def _ignored(path: Path, rules: list[Rule], *, is_folder: bool = False) -> bool:
    """Return whether git ignores a path: the innermost rule that speaks of it decides."""
    for folder, spec in reversed(rules):
        base = path if path.is_relative_to(folder) else path.resolve()
        if not base.is_relative_to(folder):
            continue
        name = base.relative_to(folder).as_posix() + ("/" if is_folder else "")
        verdict = spec.check_file(name).include
        if verdict is not None:
            return bool(verdict)
    return False
