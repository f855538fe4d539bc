"""Evidence of two nodes with two ranks each, of which the first that speaks is a victim."""

from typing import Any

from ddpk8s_agent import wireform
from ddpk8s_agent.evidence import Evidence, RankEnd
from ddpk8s_agent.gang.deciding import Decider, Outcome
from ddpk8s_agent.gang.ending import Ending
from ddpk8s_agent.gang.ledger import Ledger

CLOSED = "RuntimeError: [../gloo/transport/tcp/pair.cc:561] Connection closed by peer [127.0.0.1]:1177"
TIMED_OUT = (
    "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 20000ms for recv operation"
)
DECIDER = Decider(max_restarts=3, sees_progress=True, sees_start=True, nnodes=2, nproc=2)


def raised(line: str) -> tuple[str, ...]:
    return ("Traceback (most recent call last):", '  File "t.py", line 3', line)


def victim(rank: int, text: str = CLOSED) -> RankEnd:
    return RankEnd(rank, 1, rank, log=raised(text))


def ended(rank: int) -> RankEnd:
    return RankEnd(rank, -15, rank, closed=True)


def node(number: int, *ends: RankEnd, launcher: Any = "failed", **more: Any) -> dict[str, Any]:
    ranks = (2 * number, 2 * number + 1)
    return wireform.to_document(Evidence(launcher, 0 if launcher == "finished" else 1, ranks, ends, **more))


def ending(*documents: dict[str, Any], **more: Any) -> Ending:
    """Return an ending in which node 0, the first to speak, has only victims, if nothing else is said."""
    found = Ending(0, **more)
    for number, document in enumerate(documents):
        found.add(number, document["launcher"] == "finished", document)
    return found


def decide(found: Ending, ledger: Ledger | None = None) -> Outcome:
    return DECIDER(ledger or Ledger("t", attempt=0), found)


VICTIMS = (victim(0), ended(1))


def lost(how: str, ledger: Ledger | None = None, step: int | None = 5) -> Outcome:
    found = ending(node(0, *VICTIMS, step=step))
    found.miss(1, how)
    return decide(found, ledger)
