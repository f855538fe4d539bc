"""Whether to start again after an attempt, and after which pause: pure, from the ledger."""

from dataclasses import dataclass

from ddpk8s_agent.gang.ledger import CHARGED, Ledger

BARREN_LIMIT = 3
PORT_TRIES = 5
_FIRST_PAUSE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 60.0
SPENT, NO_PROGRESS, REPEATS = "restarts used up", "NoProgress", "repeats"


@dataclass(frozen=True)
class Decision:
    """What follows an attempt: a restart after `pause_seconds`, or the end for `reason`."""

    restart: bool
    pause_seconds: float = 0.0
    reason: str = ""


def decide(ledger: Ledger, attempt: int, max_restarts: int, *, sees_progress: bool) -> Decision:
    """Return what follows an attempt, whose record is in the ledger.

    A failure after progress starts again at once. Without progress the pauses grow (0, 5, 10 ... 60 s), and
    three such attempts in a row end the job, where progress can be seen at all: charged or free, for a node
    that is lost again and again brings nobody further.
    """
    record = ledger.records[attempt]
    if record.port:
        return Decision(restart=True)
    if ledger.charged > max_restarts:
        return Decision(restart=False, reason=SPENT)
    barren = ledger.barren()
    if sees_progress and barren >= BARREN_LIMIT:
        return Decision(restart=False, reason=NO_PROGRESS)
    if record.kind != CHARGED or barren < 2:
        return Decision(restart=True)
    pause = _FIRST_PAUSE_SECONDS * 2 ** min(barren - 2, 8)
    return Decision(restart=True, pause_seconds=min(pause, _LONGEST_PAUSE_SECONDS))
