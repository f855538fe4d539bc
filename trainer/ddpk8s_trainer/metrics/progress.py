"""The progress line: one line of JSON on standard output, read by the agent and by people's tools."""

import json
import os
import sys
from math import exp
from time import monotonic
from typing import Any, TextIO

from ddpk8s_trainer.beats import Phase
from ddpk8s_trainer.errors import ConfigurationMistake
from ddpk8s_trainer.metrics.figures import StepFigures, json_value

PREFIX = "ddpk8s-progress: "
INTERVAL_VARIABLE = "DDPK8S_PROGRESS_SECONDS"
# Time after which an old step counts only 1/e: it follows a change, and evens out ragged batches.
SMOOTHING_SECONDS = 60.0


def interval_seconds() -> float:
    """Return the least time between two progress lines, in seconds.

    Raises:
        ConfigurationMistake: the environment variable is not a number of seconds.
    """
    text = os.environ.get(INTERVAL_VARIABLE, "10")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ConfigurationMistake(
            f"{INTERVAL_VARIABLE} is {text!r}, which is not a number of seconds",
            hint=f"unset it, or set for example {INTERVAL_VARIABLE}=10",
        )
    return seconds


class RemainingTime:
    """Time to the end: a smoothed time per step, plus what evaluation and saving cost so far."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._steps = 0
        self._rate_seconds = 0.0
        self._rate_steps = 0.0
        self._pauses = 0.0

    def begin(self, step: int) -> None:
        """Begin to count after `step`."""
        self._step = step

    def update(self, step: int, training: float, pauses: float) -> None:
        """Take in the steps since the last update.

        Args:
            step: Steps done.
            training: Seconds spent in steps.
            pauses: Seconds spent in evaluation and saving.
        """
        done = step - (self._step or 0)
        self._step = step
        if done <= 0:
            return
        # Both sums fade alike, so their ratio is a mean that starts exact and forgets slowly.
        fade = exp(-training / SMOOTHING_SECONDS)
        self._rate_seconds = self._rate_seconds * fade + training
        self._rate_steps = self._rate_steps * fade + done
        self._steps += done
        self._pauses += pauses

    def seconds(self, total: int | None) -> float | None:
        """Return the seconds until step `total`, or None before the first update."""
        if not self._steps or self._step is None or total is None:
            return None
        per_step = self._rate_seconds / self._rate_steps + self._pauses / self._steps
        return max(0, total - self._step) * per_step


class ProgressLine:
    """Writes the line, at most every so many seconds; a new phase is always said."""

    def __init__(self, attempt: int, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = stream or sys.stdout
        self._interval = interval_seconds()
        self._next = 0.0
        self.remaining = RemainingTime()
        self._line: dict[str, Any] = {
            "attempt": attempt,
            "step": 0,
            "total": None,
            "epoch": 0.0,
            "loss": None,
            "learningRate": None,
            "samplesPerSecond": None,
            "tokensPerSecondPerDevice": None,
            "peakMemoryBytes": None,
            "etaSeconds": None,
            "phase": "loading",
        }

    def start(self, step: int, total: int, epoch: float = 0.0) -> None:
        """Say where the attempt begins."""
        self._line.update(step=step, total=total, epoch=round(epoch, 4))
        self.remaining.begin(step)

    def phase(self, phase: Phase) -> None:
        """Change the phase; a change is printed at once."""
        if phase == self._line["phase"] and self._next:
            return self.beat()
        self._line["phase"] = phase
        if phase == "finished":
            self._line["etaSeconds"] = 0.0
        return self._print(monotonic())

    def step(self, figures: StepFigures, rates: dict[str, float | None], peak_memory_bytes: int) -> None:
        """Take in a logged step."""
        self._line.update(
            step=figures.step,
            epoch=round(figures.epoch, 4),
            loss=figures.loss,
            learningRate=figures.learning_rate,
            samplesPerSecond=_rounded(rates["samplesPerSecond"]),
            tokensPerSecondPerDevice=_rounded(rates["tokensPerSecondPerDevice"]),
            peakMemoryBytes=peak_memory_bytes,
            etaSeconds=_rounded(self.remaining.seconds(self._line["total"])),
        )
        self.beat()

    def evaluation(self, step: int, scalars: dict[str, Any]) -> None:
        """Take in an evaluation; it is shown from the next line on."""
        self._line["evaluation"] = {"step": step} | scalars

    def beat(self) -> None:
        """Print the line again if it is time; cheap otherwise."""
        now = monotonic()
        if now >= self._next:
            self._print(now)

    def _print(self, now: float) -> None:
        self._next = now + self._interval
        if self._stream is None:
            return
        try:
            self._stream.write(PREFIX + json.dumps(json_value(self._line), allow_nan=False) + "\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            # Nobody reads any more; the training is not about this line.
            self._stream = None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
