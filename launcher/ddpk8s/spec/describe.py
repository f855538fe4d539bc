"""A field in words: its type, rules and default. `ddpk8s explain` and the reference page print it."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from ddpk8s.spec.base import Section
from ddpk8s.spec.paths import Path, quote
from ddpk8s.spec.shape import SpecField, fields_of
from ddpk8s.spec.values import format_duration

# A plain scalar: no indicator in front, no bracket, comma or backslash, no `: ` or ` #`, no space at the end.
_PLAIN = re.compile(
    r"""(-{1,2}(?=\w)|[^-?:#&*!|>'"%@`\s,{}\[\]\\.])((?! \#|:\s|:$)[^,{}\[\]\\])*(?<!\s)|\.{1,2}/[\w/.-]*"""
)
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def type_of(field: SpecField) -> str:
    """Return the type, with its choices or bounds: `integer, 1 to 1000`, `fp32 | bf16 | fp16`."""
    if field.shape.choices:
        return " | ".join(field.shape.choices)
    bounds = {
        name: getattr(rule, name) for rule in field.info.metadata for name in _BOUNDS if hasattr(rule, name)
    }
    texts = [f"{_BOUNDS[name]} {value}" for name, value in bounds.items()]
    if bounds.keys() == {"ge", "le"}:
        texts = [f"{bounds['ge']} to {bounds['le']}"]
    return ", ".join([field.shape.name, *texts])


def default_of(field: SpecField) -> str | None:
    """Return the default as YAML; None if there is none to tell: required, absent, or a section's own."""
    value = field.default
    if value is None or isinstance(value, Section):
        return None
    return inline(value)


def example_of(field: SpecField) -> str | None:
    """Return the example as YAML on one line; None if there is none."""
    return inline(field.info.examples[0]) if field.info.examples else None


def inline(value: Any) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, str) and _is_plain(value):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{inline(key)}: {inline(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(inline(entry) for entry in value) + "]"
    return quote(value) if isinstance(value, str) else json.dumps(value)


def _is_plain(text: str) -> bool:
    """Return whether a text needs no quotes in YAML, wherever it stands."""
    from ddpk8s.spec.scalars import resolve

    if not _PLAIN.fullmatch(text) or not text.isprintable():
        return False
    try:
        return isinstance(resolve(text), str)
    except ValueError:
        return False


def section_below(field: SpecField) -> tuple[type[Section], bool] | None:
    """Return the section that a field holds, and whether as a list; None for a plain value."""
    shape = field.shape
    if shape.section is not None:
        return shape.section, False
    return (shape.item.section, True) if shape.item is not None and shape.item.section is not None else None


def sections(root: type[Section], path: Path = ()) -> Iterator[tuple[Path, type[Section]]]:
    """Yield each section of the model with its path, outer ones first; entries of a list stand at index 0."""
    yield path, root
    for key, field in fields_of(root).items():
        if below := section_below(field):
            section, is_list = below
            yield from sections(section, (*path, key, 0) if is_list else (*path, key))
