"""Finding a field of the model by what a user types: `spec.topology`, `training.batch`, `nnodes`."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from ddpk8s.errors import SpecError
from ddpk8s.spec.base import Section
from ddpk8s.spec.describe import default_of, example_of, section_below, type_of
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.paths import Path, format_path, parse_path
from ddpk8s.spec.shape import SpecField, fields_of, find, walk
from ddpk8s.spec.suggest import suggest_key


@dataclass(frozen=True)
class FoundField:
    """A field, ready to be printed."""

    path: Path
    field: SpecField | None

    @property
    def name(self) -> str:
        """Its path, entries of lists as `[]`."""
        return format_path(self.path).replace("[0]", "[]") or "TrainingJob"

    @property
    def key(self) -> str:
        """Its own key."""
        return str(self.path[-1]) if self.path else "TrainingJob"

    @property
    def section(self) -> type[Section] | None:
        """The section that it holds, if any."""
        if self.field is None:
            return TrainingJob
        below = section_below(self.field)
        return below[0] if below else None

    @property
    def type(self) -> str:
        """Its type in words."""
        return "TrainingJob" if self.field is None else type_of(self.field)

    @property
    def description(self) -> str:
        """What it means, in a line or two."""
        return self.field.info.description or "" if self.field else self.section_text

    @property
    def section_text(self) -> str:
        """What the section that it holds is about; empty if it holds none."""
        return " ".join((self.section.__doc__ or "").split()) if self.section else ""

    @property
    def details(self) -> list[tuple[str, str]]:
        """Label and text of what there is to say beside."""
        if self.field is None:
            return []
        default = (
            ("required", "yes") if self.field.info.is_required() else ("default", default_of(self.field))
        )
        pairs = [default, ("unit", self.field.unit), ("example", example_of(self.field))]
        return [(label, text) for label, text in pairs if text is not None]

    def to_document(self) -> dict[str, Any]:
        """Return the field and all below it as plain values."""
        document: dict[str, Any] = {"field": self.name, "type": self.type, "description": self.description}
        if self.field is not None:
            document["required"] = self.field.info.is_required()
            values = {"default": self.field.default, "unit": self.field.unit}
            values["example"] = self.field.info.examples[0] if self.field.info.examples else None
            known = {key: value for key, value in values.items() if value is not None}
            document |= {key: value for key, value in known.items() if not isinstance(value, Section)}
        if self.children:
            document["fields"] = [child.to_document() for child in self.children]
        return document

    @property
    def children(self) -> list["FoundField"]:
        """The fields below it."""
        if self.section is None:
            return []
        is_list = self.field is not None and self.field.shape.kind == "list"
        path = (*self.path, 0) if is_list else self.path
        return [FoundField((*path, key), field) for key, field in fields_of(self.section).items()]


def find_field(text: str | None) -> FoundField:
    """Return the field that a user means; None is the whole file.

    Raises:
        SpecError: no such field, or several.
    """
    if text is None or text.lower() == "trainingjob":
        return FoundField((), None)
    text = text.removeprefix("TrainingJob.").replace("[]", "")
    try:
        path = tuple(part for part in parse_path(text) if isinstance(part, str))
    except ValueError as failure:
        raise SpecError(str(failure)) from None
    named = [(found, field) for found, field in walk(TrainingJob) if _keys(found)[-len(path) :] == path]
    exact = [(found, field) for found, field in named if _keys(found) in (path, ("spec", *path))]
    if exact:
        return FoundField(*exact[0])
    if len(named) == 1:
        return FoundField(*named[0])
    if named:
        places = ", ".join(FoundField(found, field).name for found, field in named)
        raise SpecError(f"{text} is in several places: {places}", "name one of them")
    raise SpecError(f"there is no field {text}", _suggestion(path))


def _keys(path: Path) -> Path:
    return tuple(part for part in path if isinstance(part, str))


def _suggestion(path: Path) -> str | None:
    """Return a hint for the first part of a path that the model does not know."""
    known = {_keys(found): found for found, _ in walk(TrainingJob)}
    start = path if path[0] in fields_of(TrainingJob) or ("spec", path[0]) not in known else ("spec", *path)
    length = next(i for i in range(len(start), -1, -1) if not i or start[:i] in known)
    if not length and len(path) == 1:
        close = get_close_matches(str(path[0]), sorted({str(keys[-1]) for keys in known}), 3, 0.6)
        return (
            f"did you mean {' or '.join(close)}?"
            if close
            else "`ddpk8s explain --recursive` lists all fields"
        )
    parent = known[start[:length]] if length else ()
    field = find(TrainingJob, parent)
    if isinstance(field, SpecField) and field.shape.kind == "list":
        parent = (*parent, 0)
    hint = suggest_key(TrainingJob, parent, str(start[length]))[0]
    return hint.replace("[0]", "[]") if hint else f"{FoundField(parent, None).name} has no fields"
