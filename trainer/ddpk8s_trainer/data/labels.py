"""Labels: from what stands in a file to ids from 0."""

import math
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddpk8s_trainer.data.chunk import Chunk
from ddpk8s_trainer.errors import DataMistake, ModelMistake

MANY_LABELS = 1000  # more distinct ones than this, and mostly unique, is no classification


class Labels:
    """Names of the labels in the order of their ids, given or learned.

    A value is looked up by its name first (``3`` and ``"3"`` are the same); when the names were given in
    `spec.training.model.labels`, a whole number that is no name is an id.
    """

    def __init__(self, names: Sequence[str] | None, origin: str = "spec.training.model.labels") -> None:
        """Start with known names, or with None to learn them.

        Raises:
            ModelMistake: The names are fewer than two, or not all different.
        """
        self._learning = names is None
        self._by_id = origin == "spec.training.model.labels"
        self._origin = origin
        self._codes: dict[str, int] = {name: code for code, name in enumerate(names or ())}
        if names is not None and len(self._codes) != len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise ModelMistake(f"{origin} has {twice!r} twice")
        if names is not None and len(names) < 2:
            raise ModelMistake(f"{origin} has {len(names)} label, but classification needs two")

    def encode(self, chunk: Chunk, values: Sequence[Any]) -> NDArray[np.int32]:
        """Return a code for each value, ``[samples]``: its id, or while learning what `finish` maps to it.

        Raises:
            DataMistake: A label is null, of a wrong kind, or not among the known ones.
        """
        return np.fromiter(
            (self._code(chunk, i, value) for i, value in enumerate(values)), np.int32, len(values)
        )

    def _code(self, chunk: Chunk, index: int, value: Any) -> int:
        name = label_name(value)
        if name is None:
            raise DataMistake(
                f"{chunk.where(index)}: the label is {describe(value)}",
                hint="a label is a name, a whole number or a boolean; leave samples without one out",
            )
        code = self._codes.get(name)
        if code is not None:
            return code
        if self._learning:
            return self._codes.setdefault(name, len(self._codes))
        number = _number(value, name)
        if self._by_id and number is not None and 0 <= number < len(self._codes):
            return number
        raise self._unknown(chunk.where(index), name, number)

    def _unknown(self, where: str, name: str, number: int | None) -> DataMistake:
        known = list(self._codes)
        listed = ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
        if self._by_id and number is not None:
            rule = f"is outside 0..{len(known) - 1}, and {self._origin} has no such name"
        else:
            rule = f"is not among those of {self._origin}"
        near = get_close_matches(name, known, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return DataMistake(f"{where}: label {name!r} {rule}", hint=f"{hint}the labels are: {listed}")

    def finish(self, codes: NDArray[np.int32], field: str) -> tuple[list[str], NDArray[np.int32]]:
        """Return the names in the order of their ids, and the ids of `codes`.

        Learned names are sorted, as numbers when all are whole numbers.

        Raises:
            DataMistake: All samples have the same label, or nearly each its own.
        """
        names = list(self._codes)
        if not self._learning:
            return names, codes
        if len(names) == 1:
            raise DataMistake(
                f"{field} has only one label, {names[0]!r}, in {len(codes)} samples; nothing is to learn",
                hint="check spec.training.data.labelColumn",
            )
        if len(names) > max(MANY_LABELS, len(codes) // 2):
            raise DataMistake(
                f"{field} has {len(names)} labels in {len(codes)} samples; this is no classification",
                hint="check spec.training.data.labelColumn, or list them in spec.training.model.labels",
            )
        numeric = all(_number(name, name) is not None for name in names)
        names.sort(key=lambda name: (int(name) if numeric else 0, name))
        ids = {name: index for index, name in enumerate(names)}
        remap = np.array([ids[name] for name in self._codes], np.int32)
        return names, remap[codes]


def label_name(value: Any) -> str | None:
    """Return the name of a label, or None when the value is none: null, NaN, blank, a fraction, a list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if math.isfinite(value) and value.is_integer() else None
    if isinstance(value, int | str):
        return str(value).strip() or None
    return None


def describe(value: Any) -> str:
    """Return what a value that is no label is, for a message."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "null"
    if isinstance(value, str):
        return "blank"
    return f"{value}, not a whole number" if isinstance(value, float) else f"a {type(value).__name__}"


def _number(value: Any, name: str) -> int | None:
    """Return the whole number a label is, if it is one."""
    if isinstance(value, bool):
        return int(value)
    digits = name.removeprefix("-")
    return int(name) if digits.isascii() and digits.isdecimal() else None
