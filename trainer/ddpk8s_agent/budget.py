"""Whether to start again after a failure, and after which pause: pure."""

from dataclasses import dataclass

BARREN_LIMIT = 3
_FIRST_PAUSE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 60.0


@dataclass(frozen=True)
class Decision:
    """What follows a failure: a restart after `pause_seconds`, or the end for `reason`."""

    restart: bool
    pause_seconds: float = 0.0
    reason: str = ""


class Budget:
    """Failures against `max_restarts`, and attempts in a row that came no further.

    A failure after progress starts again at once. Without progress the pauses grow (0, 5, 10 ... 60 s), and
    three such attempts in a row end the job, where progress can be seen at all.
    """

    def __init__(self, max_restarts: int, *, sees_progress: bool) -> None:
        self.max_restarts = max_restarts
        self.charged = 0
        self.barren = 0
        self._sees_progress = sees_progress
        self._newest_step: int | None = None

    def charge(self, step: int | None) -> Decision:
        """Count a failed attempt, whose newest step was `step`; return what follows."""
        self.charged += 1
        if step is not None and (self._newest_step is None or step > self._newest_step):
            self._newest_step = step
            self.barren = 0
        else:
            self.barren += 1
        if self.charged > self.max_restarts:
            return Decision(restart=False, reason="restarts used up")
        if self._sees_progress and self.barren >= BARREN_LIMIT:
            return Decision(restart=False, reason="NoProgress")
        pause = 0.0 if self.barren < 2 else _FIRST_PAUSE_SECONDS * 2 ** (self.barren - 2)
        return Decision(restart=True, pause_seconds=min(pause, _LONGEST_PAUSE_SECONDS))
