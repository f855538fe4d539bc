"""The run in a few figures and sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ddpk8s_trainer.metrics.attempts import measure_gaps
from ddpk8s_trainer.metrics.timer import PARTS
from ddpk8s_trainer.report.read import RunData
from ddpk8s_trainer.report.words import compact, duration, number, percent, size

DASH = "–"


@dataclass(frozen=True, slots=True)
class Tile:
    """One headline figure."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """How it ended; `tone` decides the color, `word` says it."""

    word: str
    tone: Literal["good", "bad", "neutral"]
    sentence: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the wall time: its name, seconds, share (0 to 1), and the CSS variable of its color."""

    name: str
    seconds: float
    share: float
    color: str


@dataclass(frozen=True)
class WallTime:
    """Where the time between the first start and the last sign of life went, in seconds.

    Attributes:
        total: All of it.
        training: In optimizer steps that counted, waiting for data and for other ranks included.
        evaluation: In evaluations.
        saving: In saves, as far as training waited for them.
        repeated: In work that a restart gave up.
        down: Between a failure and the start after it.
        paused: Between a stop on request and the start after it.
    """

    total: float
    training: float
    evaluation: float
    saving: float
    repeated: float
    down: float
    paused: float

    @property
    def wanted(self) -> float:
        """The time in which the run was meant to get on: all but the pauses."""
        return self.total - self.paused

    @property
    def rest(self) -> float:
        """Starting, loading, tokenising, exporting."""
        known = self.training + self.evaluation + self.saving + self.repeated + self.down
        return max(0.0, self.wanted - known)

    @property
    def goodput(self) -> float | None:
        """Share of the wanted time in which steps were made that survived."""
        return min(1.0, self.training / self.wanted) if self.wanted > 0 else None

    def parts(self) -> list[Part]:
        """Return the parts of the wanted time that took any."""
        parts = [
            ("training that counted", self.training, "series-0"),
            ("evaluation", self.evaluation, "series-3"),
            ("waiting for saves", self.saving, "series-6"),
            ("start-up and export", self.rest, "series-2"),
            ("repeated steps", self.repeated, "bad"),
            ("down between attempts", self.down, "muted"),
        ]
        return [
            Part(name, seconds, seconds / self.wanted, color)
            for name, seconds, color in parts
            if seconds >= 0.05 and self.wanted > 0
        ]


def wall_time(run: RunData) -> WallTime:
    """Return where the wall time went."""
    spent = dict(zip(PARTS, run.split.sum(axis=1) * run.scale, strict=True))
    for attempt in run.attempts:
        # What came after the last logged step: usually the last evaluation and the last save.
        for part, seconds in ((attempt.end or {}).get("split") or {}).items():
            if part in ("evaluation", "checkpoint"):
                spent[part] += seconds
    begin, end = span(run)
    evaluation, saving = spent.pop("evaluation"), spent.pop("checkpoint")
    gaps = measure_gaps(run.attempts)
    total = max(0.0, end - begin)
    return WallTime(
        total, sum(spent.values()), evaluation, saving, gaps.repeated, gaps.down, min(total, gaps.paused)
    )


def span(run: RunData) -> tuple[float, float]:
    """Return the Unix times of the first start and the last sign of life, in seconds."""
    times = [float(event["time"]) for event in [*run.evaluations, *run.checkpoints] if "time" in event]
    if len(run.steps["time"]):
        times += [run.steps["time"][0], run.steps["time"][-1]]
    for attempt in run.attempts:
        times += [attempt.start["time"], attempt.last_time]
    return (min(times), max(times)) if times else (0.0, 0.0)


def result(run: RunData) -> Result:
    """Return how the run ended."""
    step = number(run.last_step)
    if not run.attempts:
        return Result("unknown", "neutral", "No attempt left word.")
    end = run.attempts[-1].end
    if end is None:
        return Result(
            "unfinished", "neutral", f"Still running, or ended without a word; last seen at step {step}."
        )
    reason = str(end.get("reason"))
    if reason == "finished":
        return Result("finished", "good", f"Trained to the end, step {step}.")
    if reason == "stopped":
        return Result("stopped", "neutral", f"Asked to stop after step {step}, with everything saved.")
    return Result("failed", "bad", f"Ended by {reason} after step {step}.")


def tiles(run: RunData, wall: WallTime) -> list[Tile]:
    """Return the headline figures."""
    shown = run.best or (run.evaluations[-1] if run.evaluations else None)
    tiles = []
    if shown:
        which = f"{'best' if run.best else 'last'}, at step {number(shown['step'])}"
        tiles.append(Tile("Accuracy", percent(shown.get("accuracy")), which))
        tiles.append(Tile("F1 (macro)", percent(shown.get("f1")), which))
    losses = run.steps["loss"]
    if len(losses):
        tiles.append(Tile("Training loss", number(losses[-1]), f"at step {number(run.steps['step'][-1])}"))
    tiles.append(Tile("Wall time", duration(wall.total), _attempts(len(run.attempts))))
    tiles.append(Tile("Goodput", percent(wall.goodput), f"of {duration(wall.wanted)}: training that counted"))
    world = [number(size) for size in dict.fromkeys(a.start.get("worldSize") for a in run.attempts) if size]
    tiles.append(Tile("Processes", ", then ".join(world) or DASH))
    rate = run.steps["samplesPerSecond"]
    samples = np.nansum(run.steps["samples"]) * run.scale
    if samples > 0:
        note = f"{number(np.nanmedian(rate), 3)} per second" if np.isfinite(rate).any() else ""
        tiles.append(Tile("Training samples", compact(samples), note))
    peak = run.steps["peakMemoryBytes"]
    if np.isfinite(peak).any():
        tiles.append(Tile("Peak memory", size(float(np.nanmax(peak))), "of rank 0"))
    return tiles


def _attempts(count: int) -> str:
    return "one attempt" if count == 1 else f"{count} attempts"


def notes(run: RunData) -> Iterator[str]:
    """Yield what a reader must know before believing the curves."""
    if run.nonfinite:
        first = ", ".join(number(step) for step in run.nonfinite[:5])
        more = f" and {len(run.nonfinite) - 5} more" if len(run.nonfinite) > 5 else ""
        yield f"The loss was NaN or infinite at step {first}{more}: gaps in the curve, marked by a cross."
    skipped = run.steps["skippedSteps"]
    if len(skipped) and np.nanmax(np.nan_to_num(skipped)) > 0:
        yield f"Steps left out because of overflow or NaN: {number(float(np.nanmax(skipped)))}."
    yield from _restart_notes(run)
    if not run.evaluations:
        yield "Nothing was evaluated."
    if not len(run.steps["step"]):
        yield "No step was logged, so there are no curves."
    if run.skipped_lines:
        yield f"For speed, one step in {number(round(run.scale))} was read; every one with a NaN was."
    if run.unreadable:
        yield f"{run.unreadable} lines of metrics could not be read."


def _restart_notes(run: RunData) -> Iterator[str]:
    lost = sum(int(attempt.start.get("lostSteps") or 0) for attempt in run.attempts)
    if len(run.attempts) > 1:
        seconds = sum(float(attempt.start.get("lostSeconds") or 0.0) for attempt in run.attempts)
        yield (
            f"The run was started {len(run.attempts)} times; steps done again: {number(lost)}; "
            f"time lost: {duration(seconds)}."
        )
    paused = measure_gaps(run.attempts).paused
    if paused >= 0.05:
        yield f"Between a stop and the next start lay {duration(paused)}, which goodput does not count."
    for attempt in run.attempts:
        for rejected in attempt.start.get("rejected") or []:
            yield (
                f"Attempt {attempt.start.get('attempt')} rejected the checkpoint {rejected.get('path')}: "
                f"{rejected.get('reason')}."
            )
