"""The request to stop. As PID 1 the kernel gives us no default actions, so handlers come before all else."""

import signal
import time
from types import FrameType

from ddpk8s_agent.waker import Waker

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopRequest:
    """Whether somebody asked us to stop, and since when.

    SIGTERM, SIGINT and SIGHUP ask; asking twice changes nothing, least of all the time there is for saving.
    SIGQUIT asks to stop at once, without saving: the second Ctrl-C of `ddpk8s run`.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self.at_once = False
        self.waker = Waker()

    def install(self) -> None:
        """Listen to the signals."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._ask)
        signal.signal(signal.SIGQUIT, self._ask_at_once)
        self.waker.listen_to_signals()

    @property
    def requested(self) -> bool:
        """Whether somebody asked."""
        return self.since is not None

    def request(self) -> None:
        """Ask, from within."""
        if self.since is None:
            self.since = time.monotonic()

    def overdue(self, limit_seconds: float) -> bool:
        """Whether the time for stopping in order, counted from the first request, is over."""
        return self.at_once or (self.since is not None and time.monotonic() - self.since > limit_seconds)

    def wait(self, seconds: float) -> bool:
        """Sleep, but no longer than until somebody asks; return whether somebody did."""
        end = time.monotonic() + seconds
        while not self.requested and time.monotonic() < end:
            time.sleep(min(0.1, max(0.0, end - time.monotonic())))
        return self.requested

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.request()

    def _ask_at_once(self, _number: int, _frame: FrameType | None) -> None:
        self.at_once = True
        self.request()
