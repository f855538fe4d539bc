"""Attempts as bars over time."""

from matplotlib.axes import Axes

from ddpk8s_trainer.metrics.attempts import Attempt, lost_span
from ddpk8s_trainer.report.curves import Key, Picture
from ddpk8s_trainer.report.read import RunData
from ddpk8s_trainer.report.style import BAD, INK, MUTED, SERIES, new_axes, to_svg
from ddpk8s_trainer.report.summary import span

MOST = 12
_UNITS = (
    (2 * 86400, 86400.0, "days"),
    (2 * 3600, 3600.0, "hours"),
    (180, 60.0, "minutes"),
    (0, 1.0, "seconds"),
)


def timeline(run: RunData) -> Picture | None:
    """Return the picture of the newest attempts: running, lost, saved."""
    if not run.attempts:
        return None
    begin, end = span(run)
    shown = run.attempts[-MOST:]
    factor, unit = next((factor, unit) for least, factor, unit in _UNITS if end - begin >= least)
    figure, axes = new_axes("attempt", f"{unit} since the first start", height=1.0 + 0.24 * len(shown))
    lost = False
    for row, attempt in enumerate(shown):
        position = run.attempts.index(attempt)
        later = run.attempts[position + 1 :]
        lost |= _bar(axes, row, attempt, later, (begin, max(end, begin + 1e-3), factor))
    for event in run.checkpoints[:: 1 + len(run.checkpoints) // 100]:
        rows = [row for row, attempt in enumerate(shown) if attempt.start["time"] <= event["time"]]
        if rows:
            x = (event["time"] - begin) / factor
            axes.plot([x], [rows[-1] + 0.42], "^", color=MUTED, markersize=4, clip_on=False)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_yticks(range(len(shown)), [str(run.attempts.index(attempt) + 1) for attempt in shown])
    axes.set_xlim(0, max(end - begin, 1e-3) / factor * 1.01)
    axes.grid(visible=False)
    if len(shown) < len(run.attempts):
        axes.set_xlim(left=(shown[0].start["time"] - begin) / factor)
    keys = [Key("work that counts", "series-0", "box")]
    if lost:
        keys.append(Key("work lost", "bad", "box"))
    if len(run.attempts) > 1:
        keys.append(Key("nothing running", "muted", "dash"))
    if run.checkpoints:
        keys.append(Key("checkpoint", "muted", "triangle"))
    if any(attempt.end is not None and not attempt.clean for attempt in shown):
        keys.append(Key("ended by an error", "ink", "cross"))
    count = len(run.attempts)
    title = "Attempts" if count == len(shown) else f"Attempts (the last {len(shown)} of {count})"
    return Picture(title, to_svg(figure, f"{count} attempts over time."), keys)


def _bar(
    axes: Axes, row: int, attempt: Attempt, later: list[Attempt], scale: tuple[float, float, float]
) -> bool:
    """Draw one attempt; return whether some of its work was lost to a later one."""
    begin, newest, factor = scale
    start = (attempt.start["time"] - begin) / factor
    # The last attempt may still run: then it goes on to the last sign of life.
    last = attempt.last_time if later or attempt.end else newest
    stop = (max(last, attempt.start["time"]) - begin) / factor
    axes.barh(
        row, max(stop - start, 0.002 * (newest - begin) / factor), left=start, height=0.5, color=SERIES[0]
    )
    if attempt.end is not None and not attempt.clean:
        axes.plot([stop], [row], "x", color=INK, markersize=6, clip_on=False)
    lost = False
    for given_up in filter(None, map(lost_span, later)):
        since = max((given_up[0] - begin) / factor, start)
        if since < stop:
            axes.barh(row, stop - since, left=since, height=0.5, color=BAD)
            lost = True
    if later and (again := (later[0].start["time"] - begin) / factor) > stop:
        axes.plot([stop, again], [row, row], color=MUTED, linewidth=1.0, linestyle=(0, (2, 2)))
    return lost
