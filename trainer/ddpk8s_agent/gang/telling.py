"""The last part of the coordinator's machine: decide, make it safe, and tell everybody; see `coordinator`."""

from enum import Enum
from typing import Any

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.deciding import Decider, Outcome
from ddpk8s_agent.gang.ending import Ending
from ddpk8s_agent.gang.joining import Identity
from ddpk8s_agent.gang.ledger import Ledger
from ddpk8s_agent.gang.messages import VERSION, Message
from ddpk8s_agent.gang.roster import GONE, KILLED, SILENT, UNSTARTED, Peer, Roster
from ddpk8s_agent.gang.timing import Timing

FIRST_SAY = 2.0


class Phase(Enum):
    """Where the gang stands."""

    GATHER = "gather"
    ARMING = "arming"
    RUNNING = "running"
    ENDING = "ending"
    COMMITTING = "committing"
    VERDICT = "verdict"
    OVER = "over"


class Telling:
    """COMMITTING and VERDICT."""

    def __init__(
        self, identity: Identity, ledger: Ledger, timing: Timing, decider: Decider, now: float
    ) -> None:
        self.ledger = ledger
        self.phase = Phase.GATHER
        self._identity, self._timing, self._decider = identity, timing, decider
        self._roster = Roster(identity, timing)
        self._rdzv = ""
        self._now = self._since = self._since_end = self._not_before = self._started = self._deadline = now
        self._said = now + FIRST_SAY - timing.say_waiting
        self._pardoned: set[tuple[int, int]] = set()
        self._ending = Ending(ledger.attempt, resumed=True, pardoned=self._pardoned)
        self._finish: float | None = None
        self._outcome: Outcome | None = None
        self._pending: set[int] = set()
        self._acked: set[int] = set()
        self._serial = 0
        self._kept = self._silent_before = False

    def _decide(self) -> list[e.Action]:
        for node in range(self._identity.nnodes):
            if node not in self._ending.evidence:
                self._ending.miss(node, self._why_without(node))
        self._outcome = self._decider(self.ledger, self._ending)
        self.ledger = self.ledger.decided(self._ending.attempt, self._outcome.record)
        if self._outcome.exit is not None and self._outcome.final:
            self.ledger = self.ledger.ended({"code": self._outcome.exit, "word": self._outcome.word})
        self.phase, self._deadline = Phase.COMMITTING, self._now + self._timing.commit
        self._since_end = self._now
        self._kept, self._acked = self._identity.nnodes == 1, {0}
        return [self._commit()]

    def _why_without(self, node: int) -> str:
        """Say what became of a node that an earlier coordinator started, and that has nothing to say of it."""
        peer = self._roster.peers.get(node)
        if node != 0:
            return UNSTARTED if peer and not peer.fresh else GONE
        if self._silent_before:
            return SILENT
        # Its members saw the connection end without a word, if any of them is left.
        return KILLED if self._ending.evidence or self._identity.nnodes == 1 else GONE

    def _commit(self) -> e.Action:
        self._serial += 1
        return e.Commit(self.ledger.to_document(), self._serial)

    def _on_committed(self, event: e.Committed) -> list[e.Action]:
        if self.phase not in (Phase.COMMITTING, Phase.VERDICT) or event.serial not in (None, self._serial):
            return []
        self._kept = self._kept or event.written
        return self._announce() if self.phase is Phase.COMMITTING else self._check_acks()

    def _tick_committing(self) -> list[e.Action]:
        return self._announce() if self._now > self._deadline else []

    def _announce(self) -> list[e.Action]:
        """Send the verdict to all others; ours comes last, for with it this agent may leave."""
        self.phase, self._deadline = Phase.VERDICT, self._now + self._timing.acknowledge
        actions = [action for _, peer in sorted(self._roster.peers.items()) for action in self._tell(peer)]
        return [*actions, *self._check_acks()]

    def _tell(self, peer: Peer) -> list[e.Action]:
        """Tell a member the verdict, unless it first has to hand in its own evidence, or comes last."""
        if peer.node == 0 or peer.busy:
            return []
        self._pending.add(peer.node)
        return [self._verdict_for(peer, self._ending.attempt)]

    def _owes(self, node: int) -> bool:
        """Return whether a member that waits for a verdict will get it without asking."""
        if self.phase is Phase.COMMITTING:
            return True
        if self.phase is Phase.VERDICT:
            return node == 0
        return node in self._ending.evidence and self._ending.attempt not in self.ledger.records

    def _verdict_for(self, peer: Peer, attempt: int) -> e.Action:
        outcome, record = self._outcome, self.ledger.records[attempt]
        if outcome is None or attempt != self._ending.attempt:  # decided by an earlier coordinator
            outcome = Outcome(record, {"kind": record.kind, "message": record.why}, None, 0.0, {})
        content = {
            "attempt": attempt,
            "verdict": outcome.verdict,
            "ledger": self.ledger.to_document(),
            "exit": outcome.exit,
            "pause": outcome.pause,
            "restarts": self.ledger.charged,
        }
        return self._send(peer.conn, "VERDICT", **content)

    def _on_ack(self, peer: Peer, message: Message) -> list[e.Action]:
        peer.state = "wait"
        if self.phase is not Phase.VERDICT or message.get("of") != self._ending.attempt:
            return []
        self._kept = self._kept or peer.node != 0
        self._acked.add(peer.node)
        self._pending.discard(peer.node)
        return self._check_acks()

    def _check_acks(self) -> list[e.Action]:
        """Go on when everybody knows. If all others are gone, one must come back first.

        For what only this agent knows dies with it, and its successor might decide differently: nobody may have
        been told before. And of the end of the job nobody else can tell those who come back late.
        """
        if self._pending or self._outcome is None or not self._kept:
            return []
        last = self._outcome.exit is not None and self._outcome.final
        if (
            last
            and len(self._acked) < self._identity.nnodes
            and self._now <= self._deadline + self._timing.fence
        ):
            return []
        own = self._roster.peers.get(0)
        if own is None or own.busy:  # its processes still end
            return []
        own.state = "wait"
        actions = [self._verdict_for(own, self._ending.attempt)]
        self.phase = Phase.OVER if self._outcome.exit is not None else Phase.GATHER
        self._since = self._now + self._outcome.pause
        self._not_before = max(self._not_before, self._since)
        self._said = self._since + FIRST_SAY - self._timing.say_waiting
        self._rdzv = ""
        return actions

    def _tick_verdict(self) -> list[e.Action]:
        if self._now <= self._deadline:
            return self._check_acks()
        if not self._kept and self._now <= self._since_end + self._timing.start_deadline:
            return self._announce()  # once more: somebody must take it
        self._pending, self._kept = set(), True
        return self._check_acks()

    def _broadcast(self, kind: str, **content: Any) -> list[e.Action]:
        return [self._send(peer.conn, kind, **content) for _, peer in sorted(self._roster.peers.items())]

    def _send(self, conn: int, kind: str, **content: Any) -> e.Action:
        head = {
            "v": VERSION,
            "type": kind,
            "attempt": self.ledger.attempt,
            "node": 0,
            "inc": self._identity.inc,
        }
        return e.Send({**head, "rdzv": self._rdzv, **content}, conn)
