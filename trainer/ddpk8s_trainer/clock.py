"""When a checkpoint is due by the clock."""

import time
from datetime import timedelta


class SaveClock:
    """Counts from the last save; only rank 0's is asked, and all ranks follow it."""

    def __init__(self, interval: timedelta | None) -> None:
        self._interval = interval.total_seconds() if interval else None
        self._since = time.monotonic()

    def is_due(self) -> bool:
        """Whether the interval went by since the last save."""
        return self._interval is not None and time.monotonic() - self._since >= self._interval

    def reset(self) -> None:
        """Count anew from now."""
        self._since = time.monotonic()
