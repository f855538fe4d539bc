"""Attempts of a run: which of them belong together, and what a restart lost."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ddpk8s_trainer.metrics.events import Cut, Event, read_events

Span = tuple[float, float]


@dataclass(slots=True)
class Attempt:
    """One try, as far as it left word.

    Attributes:
        start: The start event.
        end: The end event; None if the attempt was killed or is still running.
        last_time: Unix time of its last sign of life, in seconds.
        last_step: The newest step it logged; None if it logged none.
    """

    start: Event
    end: Event | None = None
    last_time: float = field(default=0.0)
    last_step: int | None = None

    @property
    def clean(self) -> bool:
        """Whether it ended with everything it did saved."""
        return self.end is not None and self.end.get("reason") in ("finished", "stopped")


def read_attempts(path: Path) -> list[Attempt]:
    """Return the attempts of the newest trajectory, oldest first.

    `attempts.jsonl` is never cut. A start of another run that did not resume begins a new trajectory; what
    came before has nothing to do with the metrics that are there now.
    """
    trajectory: list[Attempt] = []
    for attempt in _pair(read_events(path)):
        fresh = attempt.start.get("resumedStep") is None
        if trajectory and fresh and attempt.start.get("runId") != trajectory[-1].start.get("runId"):
            trajectory = []
        trajectory.append(attempt)
    return trajectory


def _pair(events: Iterable[Event]) -> Iterator[Attempt]:
    """Yield starts with their ends; the next start tells when a killed attempt was last seen."""
    current: Attempt | None = None
    for event in events:
        if event["event"] == "start":
            if current is not None:
                if current.end is None:
                    current.last_time = max(current.last_time, event.get("lastTime") or 0.0)
                    current.last_step = event.get("lastStep")
                yield current
            current = Attempt(event, last_time=event["time"])
        elif event["event"] == "end" and current is not None:
            current.end = event
            current.last_time = event["time"]
            current.last_step = event.get("step")
    if current is not None:
        yield current


@dataclass(frozen=True, slots=True)
class Lost:
    """What a restart cost.

    Attributes:
        steps: Optimizer steps that are done again.
        seconds: Time since the resumed step was reached until the new attempt began, less what earlier restarts have
            on their account, and less the time after a clean end, in which nobody wanted the training to run.
        since: Unix time from which on it counts; None when nothing was lost.
    """

    steps: int
    seconds: float
    since: float | None = None


def measure_lost(
    previous: list[Attempt], cut: Cut, run_id: str, resumed_step: int | None, now: float
) -> Lost:
    """Return what the restart cost.

    Args:
        previous: The attempts so far, oldest first.
        cut: What cutting the metrics found.
        run_id: The run that begins now; a new run that starts from nothing lost nothing.
        resumed_step: Where it continues, or None.
        now: Unix time of the new attempt's beginning, in seconds.
    """
    same_run = bool(previous) and previous[-1].start.get("runId") == run_id
    if not previous or (not same_run and resumed_step is None):
        return Lost(0, 0.0)
    steps = max(0, cut.last_step - (resumed_step or 0))
    # When another run takes over, nobody waited for it, so only the steps count.
    if steps == 0 and (previous[-1].clean or not same_run):
        return Lost(0, 0.0)
    if cut.reached is not None:
        since = cut.reached
    elif resumed_step is None:
        since = previous[0].start["time"]
    else:
        since = cut.last_time if cut.last_time is not None else previous[-1].last_time
    until = now if same_run or cut.last_time is None else cut.last_time
    known = [*_lost_spans(previous), *_idle_spans(previous)]
    if previous[-1].clean or not same_run:
        known.append((max(previous[-1].last_time, cut.last_time or 0.0), now))
    return Lost(steps, _length([*known, (since, until)]) - _length(known), since)


@dataclass(frozen=True, slots=True)
class Gaps:
    """Where the time of a run's restarts went, in seconds.

    Attributes:
        repeated: In work that was done again.
        down: Between a failure and the start after it.
        paused: Between a clean end and the start after it; not lost, since nobody wanted it to run.
    """

    repeated: float
    down: float
    paused: float


def measure_gaps(attempts: Sequence[Attempt]) -> Gaps:
    """Return what lies between attempts, oldest first, and what they did for nothing."""
    paused = _idle_spans(attempts)
    gaps = [(attempt.last_time, following.start["time"]) for attempt, following in pairwise(attempts)]
    repeated = _length([*_lost_spans(attempts), *gaps]) - _length(gaps)
    return Gaps(repeated, _length(gaps) - _length(paused), _length(paused))


def lost_span(attempt: Attempt) -> Span | None:
    """Return the Unix times between which work was lost for this attempt to begin; also of idle time in it."""
    begin = float(attempt.start["time"])
    since = attempt.start.get("lostSince", begin - float(attempt.start.get("lostSeconds") or 0.0))
    return None if since is None or since >= begin else (float(since), begin)


def _lost_spans(attempts: Sequence[Attempt]) -> list[Span]:
    return [span for attempt in attempts if (span := lost_span(attempt))]


def _idle_spans(attempts: Sequence[Attempt]) -> list[Span]:
    """Return the times in which nobody wanted the run to go on: after a clean end, and before another run."""
    return [
        (attempt.last_time, following.start["time"])
        for attempt, following in pairwise(attempts)
        if attempt.clean or attempt.start.get("runId") != following.start.get("runId")
    ]


def _length(spans: Iterable[Span]) -> float:
    """Return the seconds that lie in any of the spans."""
    total, end = 0.0, float("-inf")
    for begin, until in sorted(spans):
        total += max(0.0, until - max(begin, end))
        end = max(end, until)
    return total
