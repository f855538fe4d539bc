"""What may stand at a place, read from the model's classes: for messages, `explain` and `--set`."""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from ddpk8s.spec.base import Section
from ddpk8s.spec.paths import Path
from ddpk8s.spec.values import TypeName

_NAMES = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    timedelta: "duration",
    Any: "any value",
}


@dataclass(frozen=True)
class Shape:
    """A type of the model without its wrapping.

    Attributes:
        kind: ``section`` (fixed keys), ``list``, ``map`` (free keys) or ``value``.
        name: The type's name for people.
        section: The class, of a section.
        item: The shape of what a list or a map holds.
        choices: The allowed words, if the type is a choice.
        nullable: Whether null is a value of its own.
    """

    kind: Literal["section", "list", "map", "value"]
    name: str
    section: type[Section] | None = None
    item: "Shape | None" = None
    choices: tuple[str, ...] = ()
    nullable: bool = False


@dataclass(frozen=True)
class SpecField:
    """A field of a section: key in YAML, shape, and pydantic's information (description, default, rules)."""

    key: str
    shape: Shape
    info: FieldInfo

    @property
    def default(self) -> Any:
        """The default as plain YAML values; None if there is none."""
        if self.info.default_factory is not None:
            return self.info.get_default(call_default_factory=True, validated_data={})
        return None if self.info.is_required() else self.info.default

    @property
    def unit(self) -> str | None:
        """Unit of a number."""
        extra = self.info.json_schema_extra
        return str(extra["unit"]) if isinstance(extra, dict) and "unit" in extra else None


def shape_of(annotation: Any) -> Shape:
    """Return the shape of a type annotation of the model."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        named = [extra.name for extra in arguments[1:] if isinstance(extra, TypeName)]
        inner = shape_of(arguments[0])
        return Shape(inner.kind, named[0] if named else inner.name, inner.section, inner.item, inner.choices)
    if origin in (Union, types.UnionType):
        inner = shape_of(next(argument for argument in arguments if argument is not type(None)))
        return Shape(inner.kind, inner.name, inner.section, inner.item, inner.choices, nullable=True)
    if origin is Literal:
        return Shape("value", "text", choices=arguments)
    if origin is list:
        item = shape_of(arguments[0])
        return Shape("list", f"list of {item.name}", item=item)
    if origin is dict:
        item = shape_of(arguments[1])
        return Shape("map", f"map of text to {item.name}", item=item)
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return Shape("section", annotation.__name__, annotation)
    return Shape("value", _NAMES[annotation])


@cache
def fields_of(section: type[Section]) -> dict[str, SpecField]:
    """Return the fields of a section by their key in YAML, in the order of the class."""
    hints = get_type_hints(section, include_extras=True)
    return {
        str(info.alias): SpecField(str(info.alias), shape_of(hints[name]), info)
        for name, info in section.model_fields.items()
    }


def find(root: type[Section], path: Path) -> SpecField | Shape | None:
    """Return the field at a path, the shape of a list's or map's entry, or None where the model ends."""
    found: SpecField | Shape = Shape("section", root.__name__, root)
    for part in path:
        shape = found.shape if isinstance(found, SpecField) else found
        if shape.section is not None and isinstance(part, str):
            field = fields_of(shape.section).get(part)
            if field is None:
                return None
            found = field
        elif shape.item is not None:
            found = shape.item
        else:
            return None
    return found


def shape_at(root: type[Section], path: Path) -> Shape | None:
    """Return the shape at a path, or None where the model ends."""
    found = find(root, path)
    return found.shape if isinstance(found, SpecField) else found


def walk(root: type[Section], prefix: Path = ()) -> Iterator[tuple[Path, SpecField]]:
    """Yield every field of the model below `root` with its path; entries of a list stand at index 0."""
    for key, field in fields_of(root).items():
        path = (*prefix, key)
        yield path, field
        shape = field.shape
        if shape.kind == "list" and shape.item is not None:
            path, shape = (*path, 0), shape.item
        if shape.section is not None:
            yield from walk(shape.section, path)
