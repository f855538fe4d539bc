"""One mistake in a job file: where, what, and how to mend it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ddpk8s.spec.paths import Path, format_path, parse_path


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake, not yet located in a file.

    Attributes:
        path: The field at fault; its place in the file is looked up later.
        message: A whole sentence that begins with the field, without a period.
        hint: How to mend it.
        related: Other fields the sentence speaks of; if one of them is wrong by itself, this is not said.
        warning: Said, but the file is accepted.
        pods_only: Whether it is so in a pod only, and of no concern to `ddpk8s run`.
        place: Where exactly, if not at the field's key.
    """

    path: Path
    message: str
    hint: str | None = None
    related: tuple[Path, ...] = ()
    warning: bool = False
    pods_only: bool = False
    place: str | None = None


@dataclass(frozen=True, slots=True)
class LocatedProblem:
    """A problem with its place; `str()` is what the user reads."""

    place: str
    problem: Problem

    def __str__(self) -> str:
        kind = "warning: " if self.problem.warning else ""
        hint = f"\n  hint: {self.problem.hint}" if self.problem.hint else ""
        return f"{self.place}: {kind}{self.problem.message}{hint}"

    def to_document(self) -> dict[str, str | None]:
        """Return the problem as plain values, for `-o json`."""
        return {
            "place": self.place,
            "severity": "warning" if self.problem.warning else "error",
            "field": format_path(self.problem.path),
            "message": self.problem.message,
            "hint": self.problem.hint,
        }


def error(field: str | Path, text: str, hint: str | None = None, related: Iterable[str] = ()) -> Problem:
    """Return an error about a field; `text` goes on after the field's name."""
    return _problem(field, text, hint, related, warning=False)


def warning(field: str | Path, text: str, hint: str | None = None, related: Iterable[str] = ()) -> Problem:
    """Return a warning about a field; `text` goes on after the field's name."""
    return _problem(field, text, hint, related, warning=True)


def pod_warning(field: str | Path, text: str, hint: str | None, related: Iterable[str] = ()) -> Problem:
    """Return a warning about what is so in a pod only."""
    return replace(warning(field, text, hint, related), pods_only=True)


def _problem(
    field: str | Path, text: str, hint: str | None, related: Iterable[str], *, warning: bool
) -> Problem:
    path = parse_path(field) if isinstance(field, str) else field
    others = tuple(parse_path(other) for other in related)
    return Problem(path, f"{format_path(path) or 'the document'} {text}", hint, others, warning)
