"""Plain YAML scalars by YAML 1.2's core schema; what other readers take for something else is refused."""

import math
import re
from typing import Any

from ddpk8s.spec.values import BadValueError

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_OLD_BOOL = {"yes": "true", "y": "true", "on": "true", "no": "false", "n": "false", "off": "false"}
_INT = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+(\.[0-9]*)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DIGITS = 30
"""Longest number in digits; what is longer is a hash or a name that lost its quotes."""


def resolve(text: str) -> Any:
    """Return the value of a plain (unquoted) scalar.

    Raises:
        BadValueError: readers of YAML disagree on what it is, or it is no finite number.
    """
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if (meant := _OLD_BOOL.get(text.lower())) and text in (text.lower(), text.upper(), text.title()):
        raise BadValueError(
            f"is {text} without quotes, which is text to some readers of YAML and {meant} to others",
            f'write "{text}" in quotes for the text, or {meant} for the boolean',
        )
    return _number(text)


def _number(text: str) -> Any:
    if _NOT_FINITE.fullmatch(text):
        raise BadValueError(
            f"is {text}, but must be finite", "write a number, or leave the field out for its default"
        )
    if _LEADING_ZERO.fullmatch(text):
        raise BadValueError(
            f"is {text}, a number with a leading zero, which some readers of YAML take for octal",
            f'write {text.lstrip("+-0") or "0"}, or "{text}" in quotes if you mean the text',
        )
    is_number = _FLOAT.fullmatch(text) or _OTHER_BASE.fullmatch(text)
    if is_number and len(text) > _DIGITS:
        raise BadValueError(f"is a number of {len(text)} characters", "quote it if you mean the text")
    if _INT.fullmatch(text):
        return int(text)
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if is_number:
        number = float(text)
        if not math.isfinite(number):
            raise BadValueError(f"is {text}, but must be finite")
        return number
    return text


def join_surrogates(text: str) -> str:
    r"""Return the text with pairs such as `\ud83d\ude00`, as JSON writes emoji, joined to one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16") if _SURROGATE.search(text) else text


def key_trouble(key: str, *, plain: bool) -> tuple[str, str | None] | None:
    """Return message and hint for a key that cannot stand in a mapping; None if it can.

    Plain `no` and `y` are the text they look like: as keys nobody means anything else.
    """
    if _SURROGATE.search(key):
        return "a key holds half of a surrogate pair, which is no character", None
    if not plain:
        return None
    if key == "<<":
        return "`<<` is a merge key, and those are not supported", "write the fields out"
    try:
        is_text = isinstance(resolve(key), str)
    except BadValueError:
        is_text = not key[:1].isdigit()
    if is_text:
        return None
    return f"the key {key or 'empty'} is no text", f'write "{key}" in quotes if you mean the text'
