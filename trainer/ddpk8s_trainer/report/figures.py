"""The pictures of the report."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from ddpk8s_trainer.metrics.events import Event
from ddpk8s_trainer.metrics.timer import PARTS, Part
from ddpk8s_trainer.report.curves import (
    Key,
    Picture,
    course_of,
    draw_curve,
    draw_points,
    is_empty,
    mark_restarts,
    needs_logarithm,
    start_at_zero,
    trend_of,
)
from ddpk8s_trainer.report.read import RunData
from ddpk8s_trainer.report.series import Floats, shares, smooth
from ddpk8s_trainer.report.style import BAD, INK, MUTED, SERIES, new_axes, to_svg
from ddpk8s_trainer.report.words import percent

BLUE, AQUA, YELLOW, GREEN, VIOLET, RED, MAGENTA, ORANGE = SERIES
_PART_COLORS = dict(zip(PARTS, (YELLOW, BLUE, VIOLET, ORANGE, AQUA, MAGENTA, GREEN, MUTED), strict=True))
# From the device's own work to what keeps it from working.
_PART_ORDER: tuple[Part, ...] = (
    "forward",
    "backward",
    "optimizer",
    "synchronize",
    "data",
    "checkpoint",
    "evaluation",
    "other",
)


def pictures(run: RunData) -> list[Picture]:
    """Return the pictures for which there is something to draw."""
    drawn = (draw(run) for draw in _PICTURES)
    return [picture for picture in drawn if picture]


def _evaluated(run: RunData, name: str) -> tuple[Floats, Floats]:
    steps = np.array([event["step"] for event in run.evaluations], dtype=float)
    return steps, np.array([_float(event, name) for event in run.evaluations], dtype=float)


def _float(event: Event, name: str) -> float:
    value = event.get(name)
    return float(value) if isinstance(value, (int, float)) else float("nan")


def _loss(run: RunData) -> Picture | None:
    steps, loss = run.steps["step"], run.steps["loss"]
    evaluated, evaluation = _evaluated(run, "loss")
    if not len(steps) and is_empty(evaluation):
        return None
    logarithmic = needs_logarithm(loss)
    figure, axes = new_axes("cross entropy", logarithmic=logarithmic)
    keys: list[Key] = []
    if not is_empty(loss):
        trend = trend_of(steps, loss, logarithmic=logarithmic)
        draw_curve(axes, steps, loss, BLUE, faint=len(trend[0]) > 0)
        keys.append(Key("training", "series-0", "faint" if len(trend[0]) else "line"))
        if len(trend[0]):
            axes.plot(*trend, color=BLUE, linewidth=1.8)
            keys.append(Key("smoothed", "series-0"))
    if not is_empty(evaluation):
        draw_points(axes, evaluated, evaluation, ORANGE)
        keys.append(Key("evaluation", "series-7"))
    keys += _mark_events(run, axes)
    keys += mark_restarts(run, axes)
    return Picture("Loss", to_svg(figure, course_of("Loss", loss)), keys)


def _mark_events(run: RunData, axes: Axes) -> list[Key]:
    """Mark steps without a finite loss along the top, and checkpoints along the bottom."""
    marks = (
        (run.nonfinite, 0.97, "x", BAD, 6, Key("NaN or infinite", "bad", "cross")),
        (
            [event["step"] for event in run.checkpoints],
            0.02,
            "^",
            MUTED,
            4,
            Key("checkpoint", "muted", "triangle"),
        ),
    )
    keys = []
    for steps, height, marker, color, points, key in marks:
        if steps:
            x = sorted(set(steps))[:: 1 + len(steps) // 100]
            y = [height] * len(x)
            edge = axes.get_xaxis_transform()
            axes.plot(x, y, marker, color=color, markersize=points, transform=edge, clip_on=False)
            keys.append(key)
    return keys


def _simple(
    title: str, column: str, unit: str, *, trend: bool = False, from_zero: bool = False
) -> Callable[[RunData], Picture | None]:
    """Return a function that draws one column of the metrics."""

    def draw(run: RunData) -> Picture | None:
        steps, values = run.steps["step"], run.steps[column]
        if is_empty(values):
            return None
        logarithmic = not from_zero and needs_logarithm(values)
        figure, axes = new_axes(unit, logarithmic=logarithmic)
        keys: list[Key] = []
        smoothed = trend_of(steps, values, logarithmic=logarithmic) if trend else (steps[:0], values[:0])
        draw_curve(axes, steps, values, BLUE, faint=len(smoothed[0]) > 0)
        if len(smoothed[0]):
            axes.plot(*smoothed, color=BLUE, linewidth=1.8)
            keys += [Key("each logged step", "series-0", "faint"), Key("smoothed", "series-0")]
        if from_zero:
            start_at_zero(axes, values)
        keys += mark_restarts(run, axes)
        return Picture(title, to_svg(figure, course_of(title, values)), keys)

    return draw


def _tokens(run: RunData) -> Picture | None:
    steps, real = run.steps["step"], run.steps["tokensPerSecondPerDevice"]
    padded = run.steps["paddedTokensPerSecondPerDevice"]
    if is_empty(real):
        return None
    figure, axes = new_axes("tokens/s per device")
    keys: list[Key] = []
    for values, color, name, variable in (
        (padded, YELLOW, "with padding", "series-2"),
        (real, BLUE, "real", "series-0"),
    ):
        trend = smooth(steps, values)
        if len(trend[0]):
            axes.plot(*trend, color=color, linewidth=1.8)
        else:
            draw_curve(axes, steps, values, color)
        keys.append(Key(name, variable))
    start_at_zero(axes, padded)
    keys += mark_restarts(run, axes)
    return Picture(
        "Token throughput", to_svg(figure, course_of("Real tokens per second per device", real)), keys
    )


def _time_split(run: RunData) -> Picture | None:
    seconds = run.split[[PARTS.index(name) for name in _PART_ORDER]]
    if seconds.sum() <= 0:
        return None
    x, parts = shares(run.steps["step"], seconds)
    # The first share holds from the beginning on.
    x, parts = np.insert(x, 0, 0.0), np.insert(parts, 0, parts[:, 0], axis=1)
    figure, axes = new_axes("share of the time")
    axes.stackplot(x, parts, colors=[_PART_COLORS[name] for name in _PART_ORDER], linewidth=0)
    axes.set_ylim(0, 1)
    axes.set_xlim(0, max(1, run.last_step) * 1.01)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    overall = dict(zip(_PART_ORDER, seconds.sum(axis=1) / seconds.sum(), strict=True))
    keys = [
        Key(f"{name} {percent(share)}", _variable_of(_PART_COLORS[name]), "box")
        for name, share in overall.items()
        if share >= 0.0005
    ]
    description = ", ".join(key.name for key in keys)
    return Picture("Where the time goes", to_svg(figure, f"Shares of the time: {description}."), keys)


def _variable_of(color: str) -> str:
    return "muted" if color == MUTED else f"series-{SERIES.index(color)}"


def _accuracy(run: RunData) -> Picture | None:
    steps, accuracy = _evaluated(run, "accuracy")
    f1 = _evaluated(run, "f1")[1]
    if is_empty(accuracy) and is_empty(f1):
        return None
    figure, axes = new_axes("share")
    keys: list[Key] = []
    draw_points(axes, steps, f1, AQUA)
    draw_points(axes, steps, accuracy, BLUE)
    keys += [Key("accuracy", "series-0"), Key("F1 (macro)", "series-1")]
    if run.best is not None:
        axes.plot(
            [run.best["step"]],
            [_float(run.best, "accuracy")],
            "o",
            color=INK,
            fillstyle="none",
            markersize=11,
        )
        keys.append(Key("best model", "ink", "ring"))
    keys += mark_restarts(run, axes)
    return Picture("Evaluation", to_svg(figure, course_of("Accuracy", accuracy)), keys)


_PICTURES: tuple[Callable[[RunData], Picture | None], ...] = (
    _loss,
    _accuracy,
    _simple("Learning rate", "learningRate", "learning rate", from_zero=True),
    _simple("Gradient norm", "gradNorm", "norm before clipping", trend=True),
    _simple("Sample throughput", "samplesPerSecond", "samples/s, all processes", trend=True, from_zero=True),
    _tokens,
    _time_split,
    _simple("Loss scale", "lossScale", "fp16 loss scale", from_zero=True),
)
