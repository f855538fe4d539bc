"""The small, countable part of a run's state: saved as JSON beside the tensors."""

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass
class TrainState:
    """Counters of a run; equal on all ranks.

    Attributes:
        step: Optimizer steps done (skipped ones count: they used their samples).
        skipped_steps: Steps that left the parameters alone because of overflow or NaN.
        skipped_in_a_row: The last of those, without a good step between.
        best_value: Best value of the evaluation metric so far, more is better; None before the first evaluation.
        best_step: Step of that evaluation.
        last_value: Value of the last evaluation's metric, likewise.
        evaluated_step: Step of the last evaluation.
        saved_step: Step of the last checkpoint asked for.
    """

    step: int = 0
    skipped_steps: int = 0
    skipped_in_a_row: int = 0
    best_value: float | None = None
    best_step: int | None = None
    last_value: float | None = None
    evaluated_step: int | None = None
    saved_step: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the counters as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "TrainState":
        """Return the counters that `as_json` gave; keys of other versions are ignored."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names})
