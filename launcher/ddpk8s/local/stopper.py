"""Ctrl-C and SIGTERM while agents run: passed on to all of them."""

import os
import signal
import time
from contextlib import suppress
from types import FrameType

_KILL_SECONDS = 15.0


class Stopper:
    """Whether the user asked to stop, and how urgently.

    The first Ctrl-C, or SIGTERM, asks the agents to stop in order, which saves the state; a second Ctrl-C to
    stop at once. If even that brings nothing, they are killed, and torchrun and workers see to their own end.
    """

    def __init__(self, *, saves: bool) -> None:
        """Listen to nothing yet; `saves` says whether the workers are ours, and known to save their state."""
        self.asked = 0
        self._saves = saves
        self._told = 0
        self._since = 0.0
        # Replaced, never changed: a signal may come while we are about it.
        self._pids: frozenset[int] = frozenset()

    def install(self) -> None:
        """Listen to the signals."""
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGTERM, self._terminate)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            signal.signal(signal.SIGHUP, self._terminate)

    def watch(self, pid: int) -> None:
        """Have signals passed on to an agent, those too that came before it was there."""
        self._pids |= {pid}
        self._pass_on([pid])

    def forget(self, pid: int) -> None:
        """Send nothing to an agent any more: it is gone."""
        self._pids -= {pid}

    def news(self) -> str | None:
        """Return what to tell the user of a signal that came, once."""
        if self.asked == self._told:
            return None
        self._told = self.asked
        if self._saves:
            first = "stopping: saving a checkpoint; Ctrl-C again stops at once"
            return first if self.asked == 1 else "stopping at once, nothing more is saved"
        return "stopping your script; Ctrl-C again kills it" if self.asked == 1 else "killing your script"

    def kill_if_deaf(self) -> None:
        """Kill the agents that do not stop at once, as asked."""
        if self.asked > 1 and time.monotonic() - self._since > _KILL_SECONDS:
            for pid in self._pids:
                send(pid, signal.SIGKILL)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = min(self.asked + 1, 2)
        self._since = time.monotonic()
        self._pass_on(self._pids)

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = max(self.asked, 1)
        self._pass_on(self._pids)

    def _pass_on(self, pids: "frozenset[int] | list[int]") -> None:
        if self.asked:
            for pid in pids:
                send(pid, signal.SIGTERM if self.asked == 1 else signal.SIGQUIT)


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
