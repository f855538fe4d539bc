"""`--set PATH=VALUE`: values from the command line, put into the document before it is judged."""

import re
from collections.abc import Sequence
from typing import Any

from ddpk8s.spec.base import Section
from ddpk8s.spec.document import Document, YamlSyntaxError, parse_value
from ddpk8s.spec.paths import Path, format_path, parse_path, quote
from ddpk8s.spec.problems import Problem
from ddpk8s.spec.secrecy import is_secret_value, is_sensitive
from ddpk8s.spec.shape import shape_at
from ddpk8s.spec.values import show


class OverrideError(Exception):
    """An override that cannot be put into the document; the message is without its place."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def apply_sets(document: Document, sets: Sequence[str], root: type[Section]) -> None:
    """Put each `PATH=VALUE` into the document, in order; what fails becomes a problem of the document."""
    for text in sets:
        name, equals, value = text.partition("=")
        place = _place(name, equals, value)
        try:
            if not equals:
                raise OverrideError("must be PATH=VALUE", "write for example --set spec.topology.nnodes=4")
            _put(document, _path(name), parse_value(value, place), root)
        except OverrideError as failure:
            document.problems.append(Problem((place,), str(failure), failure.hint, place=place))
        except YamlSyntaxError as failure:
            found = failure.located
            document.problems.append(Problem((place,), str(failure), found.problem.hint, place=found.place))


def _path(name: str) -> Path:
    try:
        return parse_path(name.strip())
    except ValueError as failure:
        raise OverrideError(str(failure)) from None


def _place(name: str, equals: str, value: str) -> str:
    """Return the override as messages show it: on one line, cut short, without secrets."""
    text = f"{name}{equals}{value}"
    if any(is_sensitive((word,), value) for word in re.split(r"[^A-Za-z0-9_-]+", name)) or is_secret_value(
        text
    ):
        text = f"{name}=..." if equals and not is_secret_value(name) else "..."
    text = text if text.isprintable() else quote(text)[1:-1].replace('\\"', '"')
    return f"--set {text if len(text) <= 80 else text[:77] + '...'}"


def _put(document: Document, path: Path, value: Document, root: type[Section]) -> None:
    """Set the value at a path; sections and lists on the way are made if they are absent."""
    if not isinstance(document.data, dict):
        return  # the file itself is no mapping, which is said already
    container: Any = document.data
    done: list[str | int] = []
    for i, part in enumerate(path):
        part = _fit(container, part, tuple(done))
        done.append(part)
        if i == len(path) - 1:
            _forget(document, tuple(done))
            _assign(container, part, value.data)
            break
        below = container[part] if _has(container, part) else None
        if not isinstance(below, dict | list):
            if below is not None:
                raise OverrideError(f"{format_path(tuple(done))} is {show(below)} and has no fields")
            shape = shape_at(root, tuple(done))
            wants_list = shape.kind == "list" if shape else isinstance(path[i + 1], int)
            below = [] if wants_list else {}
            _assign(container, part, below)
            document.places[tuple(done)] = value.name
        container = below
    _merge(document, tuple(done), value)


def _fit(container: Any, part: str | int, path: Path) -> str | int:
    """Return the part as key or index of the container."""
    if isinstance(container, dict):
        return str(part)
    count = len(container)
    if not isinstance(part, int):
        hint = f"write for example {format_path((*path, 0))}"
        raise OverrideError(f"{format_path(path)} is a list, so a number must follow, not {show(part)}", hint)
    if part > count:
        entries = "1 entry" if count == 1 else f"{count} entries"
        raise OverrideError(
            f"{format_path(path)} has {entries}, so index {part} is out of range", f"{count} appends"
        )
    return part


def _has(container: Any, part: str | int) -> bool:
    return part in container if isinstance(container, dict) else int(part) < len(container)


def _assign(container: Any, part: str | int, value: Any) -> None:
    if isinstance(container, list) and part == len(container):
        container.append(value)
    else:
        container[part] = value


def _forget(document: Document, path: Path) -> None:
    """Forget places and problems of what stood at the path."""
    for table in (document.places, document.raw):
        for old in [old for old in table if old[: len(path)] == path]:
            del table[old]
    document.problems[:] = [problem for problem in document.problems if problem.path[: len(path)] != path]


def _merge(document: Document, path: Path, value: Document) -> None:
    document.places.update({(*path, *below): place for below, place in value.places.items()})
    document.places[path] = value.name
    document.raw.update({(*path, *below): text for below, text in value.raw.items()})
    for problem in value.problems:
        text = problem.message.removeprefix(format_path(problem.path) or "the document")
        whole = (*path, *problem.path)
        document.problems.append(
            Problem(whole, f"{format_path(whole)}{text}", problem.hint, place=value.name)
        )
