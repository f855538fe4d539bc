"""What the pictures are made of."""

from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes

from ddpk8s_trainer.report.read import RunData
from ddpk8s_trainer.report.series import Floats, smooth, thin
from ddpk8s_trainer.report.style import BAD
from ddpk8s_trainer.report.words import number

# With more, points would run into each other.
MANY_POINTS = 40


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend; `color` is the name of a CSS variable."""

    name: str
    color: str
    mark: str = "line"


@dataclass(frozen=True)
class Picture:
    """A picture with its title and legend, both of which stand in the page as text."""

    title: str
    svg: str
    keys: list[Key] = field(default_factory=list)


def draw_curve(axes: Axes, x: Floats, y: Floats, color: str, *, faint: bool = False) -> None:
    """Draw a measured series; a single value is drawn as a point."""
    x, y = thin(x, y)
    marker = "o" if np.isfinite(y).sum() == 1 else "none"
    width, alpha = (1.0, 0.4) if faint else (1.8, 1.0)
    axes.plot(x, y, color=color, marker=marker, markersize=5, linewidth=width, alpha=alpha)


def draw_points(axes: Axes, x: Floats, y: Floats, color: str) -> None:
    """Draw a series of evaluations, with points unless there are many."""
    marker = "o" if len(x) <= MANY_POINTS else "none"
    axes.plot(*thin(x, y), color=color, marker=marker, markersize=4, linewidth=1.8)


def mark_restarts(run: RunData, axes: Axes) -> list[Key]:
    """Mark restarts; also give all pictures over steps the same x axis."""
    axes.set_xlim(0, max(1, run.last_step) * 1.01)
    steps = [attempt.start.get("resumedStep") or 0 for attempt in run.attempts[1:]]
    # Many restarts must not hide the curve.
    width = 1.0 if len(steps) < 6 else 0.5
    for step in steps:
        axes.axvline(step, color=BAD, linewidth=width, linestyle=(0, (3, 3)), zorder=1)
    return [Key("restart", "bad", "dash")] if steps else []


def needs_logarithm(values: Floats) -> bool:
    """Whether a spike would press the curve flat on a linear axis."""
    finite = values[np.isfinite(values)]
    return len(finite) > 0 and finite.min() > 0 and finite.max() > 50 * np.median(finite)


def trend_of(x: Floats, y: Floats, *, logarithmic: bool) -> tuple[Floats, Floats]:
    """Return the smoothed curve; on a logarithmic axis of the logarithms, or a spike would drag a long tail."""
    if not logarithmic:
        return smooth(x, y)
    x, logarithms = smooth(x, np.log(np.where(y > 0, y, np.nan)))
    return x, np.exp(logarithms)


def is_empty(values: Floats) -> bool:
    """Whether there is nothing to draw."""
    return not np.isfinite(values).any()


def start_at_zero(axes: Axes, values: Floats) -> None:
    """Let the y axis begin at zero, for figures whose ratio matters."""
    highest = values[np.isfinite(values)].max(initial=0.0)
    axes.set_ylim(0, highest * 1.08 if highest > 0 else 1.0)


def course_of(name: str, values: Floats) -> str:
    """Return a sentence for people who cannot see the curve."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return f"{name} over steps."
    return f"{name} over steps, from {number(finite[0], 3)} to {number(finite[-1], 3)}."
