"""The figures that the training loop hands over."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What does not change during one attempt.

    Attributes:
        directory: The job directory.
        run_id: Identifies the run; attempts of one run share it.
        attempt: 0 for the first try, one more after each restart.
        world_size: Number of processes.
        device_type: `cuda` or `cpu`; decides which memory is measured.
        tensorboard: Whether to write event files.
    """

    directory: Path
    run_id: str
    attempt: int
    world_size: int
    device_type: str = "cpu"
    tensorboard: bool = True


@dataclass(frozen=True, slots=True)
class StepFigures:
    """One logged optimizer step; the three counts are sums over all ranks since the step logged before.

    Attributes:
        step: Optimizer steps done, this one included.
        epoch: Passes over the data so far, with fraction.
        loss: Loss over the global batch; NaN and infinity are recorded as they are.
        learning_rate: Of this step.
        grad_norm: Norm of the gradient before clipping; None where it was not computed.
        samples: Samples seen.
        tokens: Real tokens seen, without padding.
        padded_tokens: Tokens computed, padding included.
        loss_scale: fp16 only.
        skipped_steps: Steps left out since the training began (overflow or NaN).
    """

    step: int
    epoch: float
    loss: float
    learning_rate: float
    grad_norm: float | None
    samples: int
    tokens: int
    padded_tokens: int
    loss_scale: float | None = None
    skipped_steps: int = 0

    def rates(self, seconds: float, world_size: int) -> dict[str, float | None]:
        """Return samples/s of all ranks, tokens/s per device (real, padded) and the padding's share (0-1).

        Args:
            seconds: Time in which the samples were trained on.
            world_size: Number of devices.
        """
        per_device = seconds * world_size
        timed = seconds > 0
        return {
            "samplesPerSecond": self.samples / seconds if timed else None,
            "tokensPerSecondPerDevice": self.tokens / per_device if timed else None,
            "paddedTokensPerSecondPerDevice": self.padded_tokens / per_device if timed else None,
            "paddingShare": 1 - self.tokens / self.padded_tokens if self.padded_tokens else None,
        }


def json_value(value: Any) -> Any:
    """Return `value` with NaN and infinities as the strings `NaN`, `Infinity`, `-Infinity`, which JSON lacks.

    Scalars of numpy and torch become Python numbers; containers are copied.
    """
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if hasattr(value, "tolist"):
        return json_value(value.tolist())
    if isinstance(value, Path):
        return str(value)
    return value
