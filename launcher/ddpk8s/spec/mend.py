"""Hints for values of the wrong type: what the user most likely meant to write."""

import re
import shlex
from typing import Any

from ddpk8s.spec.describe import inline
from ddpk8s.spec.paths import Path
from ddpk8s.spec.secrecy import is_secret_value
from ddpk8s.spec.shape import Shape, fields_of
from ddpk8s.spec.values import show

# The field that people mean when they write a plain value in place of a section.
_MAIN_FIELD = {
    "Model": "path",
    "Data": "train",
    "Precision": "type",
    "Schedule": "type",
    "Optimizer": "name",
    "Checkpoint": "directory",
    "Fabric": "profile",
    "Metadata": "name",
    "Entrypoint": "script",
    "Batch": "globalBatch",
}
_NOTHING = ("auto", "default", "none", "gpu", "cpu", "unlimited", "infinite")
_LONGEST = 60


def mend(path: Path, value: Any, shape: Shape, raw: str | None) -> str | None:
    """Return a hint for a value that is not of the shape its field has."""
    if isinstance(value, str) and (len(value) > _LONGEST or is_secret_value(value)):
        return None
    key = f"{inline(path[-1])}: " if path and isinstance(path[-1], str) else "- "
    if shape.kind == "list":
        return _mend_list(key, value, raw)
    if shape.kind in ("section", "map"):
        return _mend_mapping(key, value, shape, raw)
    if isinstance(value, str) and value.lower() in _NOTHING:
        return "leave the field out for its default"
    if shape.name in ("integer", "number"):
        return _mend_number(key, value, shape)
    if shape.name == "true or false":
        words: dict[object, str] = {1: "true", 0: "false", "true": "true", "false": "false"}
        meant = words.get(
            value.lower() if isinstance(value, str) else value if isinstance(value, int) else None
        )
        return f"write {key}{meant or 'true or false'}, without quotes"
    return _mend_text(key, value, raw)


def _mend_list(key: str, value: Any, raw: str | None) -> str | None:
    if key == "- " or not isinstance(value, str | int | float):
        return "begin each entry with `- `"
    try:
        words = shlex.split(value) if isinstance(value, str) else []
    except ValueError:
        words = []
    return f"write {key}{inline(words)}" if len(words) > 1 else f"write {key}[{raw or inline(value)}]"


def _mend_mapping(key: str, value: Any, shape: Shape, raw: str | None) -> str | None:
    if isinstance(value, list):
        if value and all(isinstance(entry, dict) and {"name", "value"} <= entry.keys() for entry in value):
            return f"write {key}{{{inline(value[0]['name'])}: VALUE, ...}}, without `name` and `value`"
        return "remove the `- ` in front of its fields"
    if shape.section is None:
        return "write `name: value` lines below it"
    main = _MAIN_FIELD.get(shape.section.__name__)
    if main is not None and (isinstance(value, str) or shape.section.__name__ == "Batch"):
        return f"write {key}{{{main}: {raw or inline(value)}}}"
    return f"its fields are {', '.join(fields_of(shape.section))}"


def _mend_number(key: str, value: Any, shape: Shape) -> str | None:
    if isinstance(value, str):
        text = value.strip()
        plain = re.sub(r"(?<=\d)[_, ](?=\d)", "", text)
        if re.fullmatch(r"[-+]?\d+" if shape.name == "integer" else r"[-+]?\d*\.?\d+([eE][-+]?\d+)?", plain):
            return f"write {key}{plain}" + (", without quotes" if plain == text else "")
        if percent := re.fullmatch(r"(\d+(?:\.\d+)?) ?%", text):
            return f"write {key}{float(percent[1]) / 100:g}" if shape.name == "number" else None
        if with_unit := re.fullmatch(r"(\d+) ?[a-z]+", text):
            return f"write {key}{with_unit[1]}, without a unit"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"write {key}{int(value)}"
    return None


def _mend_text(key: str, value: Any, raw: str | None) -> str | None:
    if value is None:
        return f'write {key}"" for an empty text'
    if isinstance(value, bool | int | float):
        return f'quote it: {key}"{raw or show(value)}"'
    if isinstance(value, dict):
        texts = [entry for entry in value.values() if isinstance(entry, str)]
        short = len(value) == len(texts) == 1 and len(texts[0]) < _LONGEST and not is_secret_value(texts[0])
        return f"write {key}{inline(texts[0])}" if short else None
    if isinstance(value, list):
        return "give one, or quote it if it is one text that begins with `[`"
    return None
