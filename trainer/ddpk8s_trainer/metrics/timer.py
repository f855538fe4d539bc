"""Where the time of a step goes."""

from time import perf_counter
from typing import Literal

Part = Literal["data", "forward", "backward", "synchronize", "optimizer", "checkpoint", "evaluation", "other"]
PARTS: tuple[Part, ...] = (
    "data",
    "forward",
    "backward",
    "synchronize",
    "optimizer",
    "checkpoint",
    "evaluation",
    "other",
)


class StepTimer:
    """A stopwatch that gives every stretch of time to one part, so that the parts add up to the wall time.

    It never waits for a device. On CUDA, kernels run behind the host's back: the time shows up where the host
    waits for them, mostly in `synchronize`.
    """

    def __init__(self) -> None:
        self._seconds: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
        self._last = perf_counter()

    def lap(self, part: Part) -> None:
        """Give the time since the last lap to `part`."""
        now = perf_counter()
        self._seconds[part] += now - self._last
        self._last = now

    def take(self) -> dict[Part, float]:
        """Return the seconds of every part since the last `take` and begin anew; a rest goes to `other`."""
        self.lap("other")
        taken = self._seconds
        self._seconds = dict.fromkeys(PARTS, 0.0)
        return taken


class NoTimer(StepTimer):
    """The stopwatch of ranks that record nothing."""

    def lap(self, part: Part) -> None:
        """Do nothing."""
