"""Scalar values of the specification: Go durations and Kubernetes quantities."""

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, StringConstraints, WithJsonSchema

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_DURATION = re.compile(rf"(?:{_DURATION_PART.pattern})+", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = timedelta(days=3650)

_QUANTITY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?", re.ASCII)
_SCALE = {"m": Decimal("0.001"), "": Decimal(1)}
_SCALE |= {unit: Decimal(1000) ** (i + 1) for i, unit in enumerate("kMGTPE")}
_SCALE |= {f"{unit}i": Decimal(1024) ** (i + 1) for i, unit in enumerate("KMGTPE")}


@dataclass(frozen=True)
class TypeName:
    """The name of a scalar type for people, in its annotation: `ddpk8s explain` prints it."""

    name: str


class BadValueError(ValueError):
    """A value against its rule; the message goes on after the field's name: ``is 'x', but must be ...``."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def show(value: Any) -> str:
    """Return a value as a message shows it: text in quotes and cut short, `true`, `null`, "a list"."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "a mapping"
    return (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or isinstance(value, bool)
        else str(value)
    )


def amount(number: float, unit: str) -> str:
    """Return a number with its unit, which is given in the plural: ``1 process``, ``8 processes``."""
    if number == 1:
        unit = re.sub(r"(?<=ss|ch)es$|s$", "", unit)
    return f"{number:g} {unit}" if isinstance(number, float) else f"{number} {unit}"


def parse_duration(value: Any) -> timedelta:
    """Return a Go duration such as ``1h30m`` or ``90s`` as a timedelta.

    Raises:
        BadValueError: not a string of that form (a bare number has no unit, hence is refused), or too long.
    """
    if isinstance(value, timedelta):
        return value
    rule = "must be a duration: numbers with units (ms, s, m, h), as in 90s or 1h30m"
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise BadValueError(f"is {value}, but {rule}", f"write {value}s if you mean seconds")
    if not isinstance(value, str):
        raise BadValueError(rule)
    if not _DURATION.fullmatch(value) or len(value) > 64:
        raise BadValueError(f"is {show(value)}, but {rule}", _mend_duration(value))
    seconds = sum(float(n) * _SECONDS[unit] for n, unit in _DURATION_PART.findall(value))
    if seconds > _LONGEST.total_seconds():
        raise BadValueError(f"is {show(value)}, but ten years (87600h) are the most")
    return timedelta(seconds=seconds)


def _mend_duration(value: str) -> str | None:
    """Return a hint for the usual ways to miss: `2min`, `1 hour`, `1d`, `none`."""
    if value.lower() in ("none", "never", "off", "infinite"):
        return "leave the field out, or write null"
    match = re.fullmatch(r"(\d{1,6})\s*([a-z]+)", value.strip().lower(), re.ASCII)
    if not match:
        return None
    if match[2] in ("d", "day", "days"):
        return f"write {int(match[1]) * 24}h"
    unit = {"s": "s", "m": "m", "h": "h"}.get(match[2][0])
    return f"write {match[1]}{unit}" if unit else None


def format_duration(value: timedelta) -> str:
    """Return a timedelta in Go's form, without units that are zero: ``1h30m``, ``500ms``, ``0s``."""
    milliseconds = round(value.total_seconds() * 1000)
    parts = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_quantity(value: str) -> Decimal:
    """Return a Kubernetes quantity (``500m``, ``64Gi``) as a number: cores, or bytes.

    Raises:
        BadValueError: not a quantity.
    """
    match = _QUANTITY.fullmatch(value) if len(value) <= 32 else None
    if not match:
        rule = "must be a Kubernetes quantity, as in 500m, 4, 512Mi or 64Gi"
        raise BadValueError(f"is {show(value)}, but {rule}", _mend_quantity(value))
    return Decimal(match[1]) * _SCALE[match[2] or ""]


def _mend_quantity(value: str) -> str | None:
    """Return a hint for the usual ways to miss: `64GB`, `64 GiB`, `64gi`."""
    if cores := re.fullmatch(r"(\d+)\s*(cores?|cpus?)", value.strip(), re.ASCII | re.IGNORECASE):
        return f"write {cores[1]}"
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgtpe])i?b?", value.strip(), re.ASCII | re.IGNORECASE)
    return f"write {match[1]}{match[2].upper()}i" if match else None


def format_bytes(count: int | Decimal) -> str:
    """Return a number of bytes for people, in powers of 1024: ``8Gi``, ``1.5Gi``, ``900``."""
    for unit in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        if count >= _SCALE[unit]:
            return f"{Decimal(count) / _SCALE[unit]:.4g}{unit}"
    return str(int(count))


def _check_quantity(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # `cpu: 4` is what everybody writes
    elif isinstance(value, float):
        value = f"{value:f}".rstrip("0").rstrip(".")  # and `cpu: 0.5`
    if isinstance(value, str):
        parse_quantity(value)
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": r"^(\d+(\.\d+)?(ms|s|m|h))+$"}),
    TypeName("duration"),
]
"""A Go duration; a `timedelta` in Python."""

Quantity = Annotated[
    str,
    BeforeValidator(_check_quantity),
    StringConstraints(strict=True),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": f"^{_QUANTITY.pattern}$"}, {"type": "number", "minimum": 0}]}
    ),
    TypeName("quantity"),
]
"""A Kubernetes quantity, kept as it was written; `parse_quantity` gives the number."""
