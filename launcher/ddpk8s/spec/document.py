"""YAML text to plain values, with the place of every node and all problems that do not stop the reading."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ddpk8s.spec.paths import Path, format_path
from ddpk8s.spec.problems import LocatedProblem, Problem, error
from ddpk8s.spec.scalars import join_surrogates, key_trouble, resolve
from ddpk8s.spec.secrecy import is_sensitive
from ddpk8s.spec.values import BadValueError
from ddpk8s.spec.yaml_errors import explain_failure

MAX_DEPTH = 40


@dataclass(slots=True)
class Document:
    """What a file holds.

    Attributes:
        name: The file as the user named it.
        data: Its values: dicts, lists, texts, numbers, booleans and None.
        places: Where each node begins, as ``job.yaml:12:5``; for a mapping's entry the place of its key.
        raw: Plain scalars that are no text, as they were written.
        problems: What is wrong already; those values are None in `data`.
    """

    name: str
    data: Any = None
    places: dict[Path, str] = field(default_factory=dict)
    raw: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def locate(self, problem: Problem) -> LocatedProblem:
        """Return the problem with the place of its field, or of the nearest section around it."""
        path = problem.path
        while path and path not in self.places:
            path = path[:-1]
        return LocatedProblem(problem.place or self.places.get(path, self.name), problem)


class YamlSyntaxError(Exception):
    """The text is no YAML that we read; nothing after this place can be judged."""

    def __init__(self, place: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.located = LocatedProblem(place, Problem((), message, hint))


def parse_document(text: str, name: str) -> Document:
    """Return the one document in a YAML text.

    Raises:
        YamlSyntaxError: not YAML, no document, several, a directive, or nested too deeply.
    """
    document = Document(name)
    builder = _Builder(document, lambda mark: f"{name}:{mark.line + 1}:{mark.column + 1}")
    document.data = builder.build(text)
    return document


def parse_value(text: str, place: str) -> Document:
    """Return the value in a short YAML text, every node of it at the same place.

    Raises:
        YamlSyntaxError: as for `parse_document`.
    """
    document = Document(place)
    document.data = _Builder(document, lambda _: place).build(text, empty_is_null=True)
    return document


class _Builder:
    def __init__(self, document: Document, place: Callable[[Any], str]) -> None:
        self.document = document
        self.place = place

    def build(self, text: str, *, empty_is_null: bool = False) -> Any:
        """Return the values of the only document that is not empty."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError
        from ruamel.yaml.reader import ReaderError

        self.events: Iterator[Any] = iter(YAML(typ="safe", pure=True).parse(text))
        try:
            found, value = self._stream()
        except MarkedYAMLError as failure:
            mark, message, hint = explain_failure(failure, text)
            place = self.place(mark) if mark else self.document.name
            raise YamlSyntaxError(place, message, hint) from None
        except ReaderError as failure:
            line = text.count("\n", 0, failure.position) + 1
            message = f"holds the character U+{failure.character:04X}, which YAML does not allow"
            raise YamlSyntaxError(
                f"{self.document.name}:{line}", message, "remove it, or write it as an escape"
            ) from None
        if not found and not empty_is_null:
            hint = "`ddpk8s init` writes a file to start from"
            raise YamlSyntaxError(self.document.name, "is empty, but must hold a TrainingJob", hint)
        return value

    def _stream(self) -> tuple[bool, Any]:
        found, value = False, None
        for event in self.events:
            if type(event).__name__ != "DocumentStartEvent":
                continue
            if event.version or event.tags:
                hint = "remove the line that starts with `%`; this file is read as YAML 1.2"
                raise YamlSyntaxError(self.place(event.start_mark), "YAML directives are not supported", hint)
            start = next(self.events)
            if type(start).__name__ == "ScalarEvent" and not start.value and not start.style:
                continue  # `---` with nothing after it
            if found:
                hint = "keep one document in each file"
                raise YamlSyntaxError(self.place(start.start_mark), "a second document begins here", hint)
            found = True
            self.document.places[()] = self.place(start.start_mark)
            value = self._node(start, (), 0)
        return found, value

    def _node(self, event: Any, path: Path, depth: int) -> Any:
        kind = type(event).__name__
        if depth > MAX_DEPTH:
            message = f"is nested more than {MAX_DEPTH} levels deep"
            raise YamlSyntaxError(self.place(event.start_mark), message)
        if kind == "AliasEvent":
            name = event.anchor
            hint = f'write the value out, or "*{name}" in quotes if you mean the text'
            return self._refuse(path, f"is `*{name}`, an alias, and aliases are not supported", hint)
        value: Any
        if kind == "MappingStartEvent":
            value = self._mapping(path, depth)
        elif kind == "SequenceStartEvent":
            value = self._sequence(path, depth)
        else:
            value = self._scalar(event, path)
        if event.tag is not None:
            hint = "remove the tag, or quote the value if it is text"
            return self._refuse(path, f"has the tag `{event.tag}`, and tags are not supported", hint)
        return value

    def _mapping(self, path: Path, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while type(key_event := next(self.events)).__name__ != "MappingEndEvent":
            mark = key_event.start_mark
            key = self._key(key_event, path, depth)
            event = next(self.events)
            if key is None:
                self._node(event, (*path, "?"), depth + 1)
                continue
            here = (*path, key)
            if key in result:
                hint = f"keep one of them; the first is at {self.document.places[here]}"
                self._refuse(here, "is there twice", hint, key_event)
                self._skip(event, here, depth)
                continue
            self.document.places[here] = self.place(mark)
            result[key] = self._node(event, here, depth + 1)
        return result

    def _key(self, event: Any, path: Path, depth: int) -> str | None:
        """Return a key that is text; for any other, note the problem and return None."""
        if type(event).__name__ != "ScalarEvent":
            self._skip(event, (*path, "?"), depth)
            trouble: tuple[str, str | None] | None = (
                "a key is a list, a mapping or an alias, but must be text",
                None,
            )
        else:
            trouble = key_trouble(event.value, plain=event.style is None)
        if trouble is None:
            return str(event.value)
        where = f"in {format_path(path)} " if path else ""
        place = self.place(event.start_mark)
        self.document.problems.append(Problem((*path, "?"), f"{where}{trouble[0]}", trouble[1], place=place))
        return None

    def _sequence(self, path: Path, depth: int) -> list[Any]:
        result: list[Any] = []
        while type(event := next(self.events)).__name__ != "SequenceEndEvent":
            here = (*path, len(result))
            self.document.places[here] = self.place(event.start_mark)
            result.append(self._node(event, here, depth + 1))
        return result

    def _scalar(self, event: Any, path: Path) -> Any:
        text: str = event.value
        try:
            text = join_surrogates(text)
        except UnicodeDecodeError:
            return self._refuse(path, "holds half of a surrogate pair, which is no character")
        if event.style is not None:
            return text
        try:
            value = resolve(text)
        except BadValueError as failure:
            message = str(failure)
            if is_sensitive(path, text):
                message = "is a number or a word on which readers of YAML disagree"
                return self._refuse(path, message, "write it in quotes")
            return self._refuse(path, message, failure.hint)
        if not isinstance(value, str):
            self.document.raw[path] = text
        return value

    def _skip(self, event: Any, path: Path, depth: int) -> None:
        """Read over a node and forget it, its problems too."""
        kept = self.document
        self.document = Document(kept.name)
        try:
            self._node(event, path, depth + 1)
        finally:
            self.document = kept

    def _refuse(self, path: Path, text: str, hint: str | None = None, event: Any = None) -> None:
        """Note that a value is not accepted; its place is that of its key unless an event is given."""
        problem = replace(error(path, text, hint), place=self.place(event.start_mark) if event else None)
        self.document.problems.append(problem)
