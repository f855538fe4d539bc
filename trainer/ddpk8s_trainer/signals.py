"""SIGTERM becomes a request that all ranks agree on; nothing is cut short."""

import ctypes
import signal
import sys
from types import FrameType

_PR_SET_PDEATHSIG = 1


class StopRequest:
    """Whether this process was asked to stop. Further signals change nothing."""

    def __init__(self) -> None:
        self.requested = False

    def install(self) -> None:
        """Listen to SIGTERM, and to SIGINT as somebody's Ctrl-C in a terminal."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    @staticmethod
    def outlast() -> None:
        """Take no notice of signals any more: Python lets go of its handlers some time before the process ends."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        self.requested = True


def die_with_parent() -> None:
    """Have the kernel kill this process when torchrun dies, so that no orphan trains on unseen (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
