"""pydantic's findings in the words of this project: given value, rule, fix."""

from collections.abc import Mapping
from typing import Any

from ddpk8s.spec.base import Section
from ddpk8s.spec.mend import mend
from ddpk8s.spec.paths import Path, format_path
from ddpk8s.spec.problems import Problem, error
from ddpk8s.spec.secrecy import is_sensitive
from ddpk8s.spec.shape import Shape, SpecField, find, shape_at
from ddpk8s.spec.suggest import suggest_key, suggest_word
from ddpk8s.spec.values import BadValueError, amount, show

_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
    "greater_than": ("gt", "more than"),
    "less_than": ("lt", "less than"),
}
_RULES = {"integer": "a whole number", "number": "a number", "true or false": "true or false", "text": "text"}


def translate(
    failure: Mapping[str, Any], root: type[Section], raw: Mapping[Path, str], present: bool
) -> Problem:
    """Return the problem that one of pydantic's error dicts stands for.

    Args:
        failure: An entry of `ValidationError.errors()`.
        root: The class that was validated.
        raw: Scalars that are no text, as the user wrote them.
        present: Whether the field is in the document at all (with nothing after it, if it is missing).
    """
    path: Path = tuple(failure["loc"])
    if path and path[-1] == "[key]":
        rule = failure.get("ctx", {}).get("error", "is not allowed")
        return Problem(path[:-1], f"a key of {format_path(path[:-2])} {rule}")
    if failure["type"] == "missing":
        return _missing(path, root, present)
    if failure["type"] == "extra_forbidden":
        hint, meant = suggest_key(root, path[:-1], str(path[-1]))
        return Problem(path, f"{format_path(path)} is not a known field", hint, related=meant)
    return _wrong_value(path, failure, root, raw.get(path))


def _wrong_value(path: Path, failure: Mapping[str, Any], root: type[Section], raw: str | None) -> Problem:
    kind, value, context = failure["type"], failure.get("input"), failure.get("ctx", {})
    given = "" if is_sensitive(path, value) else f"is {raw or show(value)}, but "
    shape = shape_at(root, path)
    if kind == "value_error":
        return _own_rule(path, context["error"], secret=not given)
    if kind == "literal_error":
        choices = shape.choices if shape else ()
        words = choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
        return error(path, f"{given}must be {words}", suggest_word(value, choices))
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return error(path, f"{given}must be {words} {_bound(context[key], root, path)}")
    if kind == "string_too_short":
        return error(path, "is empty, but must be text")
    return _wrong_type(path, value, given, shape, raw)


def _missing(path: Path, root: type[Section], present: bool) -> Problem:
    field = find(root, path)
    hint = None
    if isinstance(field, SpecField):
        if field.info.examples and not isinstance(field.info.examples[0], dict | list):
            hint = f"write for example {path[-1]}: {field.info.examples[0]}"
        elif field.shape.section is not None:
            hint = f"`ddpk8s explain {format_path(path)}` lists its fields"
    return error(path, "is empty, but must be given" if present else "is missing", hint)


def _own_rule(path: Path, rule: Any, *, secret: bool) -> Problem:
    """Return the problem of one of our own validators, whose message begins after the field's name."""
    text, hint = str(rule), rule.hint if isinstance(rule, BadValueError) else None
    if secret and text.startswith("is "):
        text, hint = text.partition(", but ")[2] or "has a value that is not allowed", None
    return error(path, text, hint)


def _wrong_type(path: Path, value: Any, given: str, shape: Shape | None, raw: str | None) -> Problem:
    if shape is None:
        return error(path, f"{given}must be something else")
    names = {"list": "a list", "section": "a mapping", "map": "a mapping"}
    rule = names.get(shape.kind) or _RULES.get(shape.name) or f"a {shape.name}"
    return error(path, f"{given}must be {rule}", mend(path, value, shape, raw) if given else None)


def _bound(value: Any, root: type[Section], path: Path) -> str:
    field = find(root, path)
    if isinstance(field, SpecField) and field.unit:
        return amount(value, field.unit)
    return f"{value:g}" if isinstance(value, float) else str(value)
