"""Attempts of a run: which of them belong together, and what a restart lost."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ddpk8s_trainer.metrics.events import Cut, Event, read_events


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
        seconds: Time since the resumed step was reached (or since a clean stop) until the new attempt began.
    """

    steps: int
    seconds: float


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
    step = resumed_step or 0
    steps = max(0, cut.last_step - step)
    last = previous[-1]
    if last.clean and steps == 0:
        since = last.last_time
    elif cut.reached is not None:
        since = cut.reached
    elif resumed_step is None:
        since = previous[0].start["time"]
    else:
        since = cut.last_time if cut.last_time is not None else last.last_time
    if not same_run:
        # Another run took over: nobody waited for it, so only the steps count.
        now = cut.last_time if cut.last_time is not None and steps else since
    return Lost(steps, max(0.0, now - since - _counted_already(previous, since)))


def _counted_already(previous: list[Attempt], since: float) -> float:
    """Return the seconds after `since` that earlier restarts have on their account, each just before its start."""
    counted = 0.0
    for attempt in previous:
        lost = float(attempt.start.get("lostSeconds") or 0.0)
        counted += max(0.0, min(lost, attempt.start["time"] - since))
    return counted
