"""The machine of node rank 0: gathers all members, starts them as one, decides what an attempt came to.

    GATHER -- all here, none busy --> ARMING -- all READY --> RUNNING -- first sign of an end --> ENDING
      ^  ^                              |                        |                                   |
      |  '---- loss, NOTREADY, 60 s ----'                        '-- all DONE, ok ----.    all DONE, or 45 s
      |                                                                               v              v
      '------------------- all ACK, pause <-- VERDICT <-- ledger on the volume -- COMMITTING <-------'
                               '--> OVER

A coordinator that was lost comes back with an empty memory: members hand it their ledgers, and evidence of the
attempt nobody has decided, which it then decides as its predecessor would have.
"""

from collections.abc import Callable
from dataclasses import replace

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.deciding import Decider
from ddpk8s_agent.gang.gating import Gating
from ddpk8s_agent.gang.joining import Identity
from ddpk8s_agent.gang.judging import Phase
from ddpk8s_agent.gang.ledger import Ledger, from_document, union
from ddpk8s_agent.gang.messages import Message
from ddpk8s_agent.gang.roster import CUT, KILLED, LEFT, SILENT, Admission, Peer
from ddpk8s_agent.gang.timing import Timing

_MISMATCHES = 3


class Coordinator(Gating):
    """See the head of this file. `handle` is told what happened, and returns what is to be done."""

    def __init__(
        self, identity: Identity, ledger: Ledger, timing: Timing, decider: Decider, ports: range, now: float
    ) -> None:
        super().__init__(identity, ledger, timing, decider, ports, now)
        self._heartbeat = now
        self._messages: dict[str, Callable[[Peer, Message], list[e.Action]]] = {
            "HB": self._on_heartbeat,
            "READY": self._on_ready,
            "NOTREADY": self._on_not_ready,
            "SUSPECT": self._on_suspect,
            "DONE": self._on_done,
            "STOPPING": self._on_stopping,
            "LEAVE": self._on_leave,
            "CUT": lambda peer, _message: [*self._lose(peer, CUT), e.Hangup(peer.conn)],
            "ACK": self._on_ack,
        }
        self._ticks: dict[Phase, Callable[[], list[e.Action]]] = {
            Phase.GATHER: self._gather,
            Phase.ARMING: self._tick_arming,
            Phase.RUNNING: self._tick_running,
            Phase.ENDING: self._tick_ending,
            Phase.COMMITTING: self._tick_committing,
            Phase.VERDICT: self._tick_verdict,
        }

    def handle(self, event: e.Event, now: float) -> list[e.Action]:
        """Take an event in; `now` is in seconds, on any clock that only moves forward."""
        if self.phase is Phase.OVER:
            return []
        self._now = now
        if isinstance(event, e.Received):
            return self._on_message(event.message, event.conn)
        if isinstance(event, e.Closed):
            return self._on_closed(event)
        if isinstance(event, e.Committed):
            return self._on_committed(event)
        if isinstance(event, e.Learned) and self.phase is Phase.GATHER:
            self.ledger = union(self.ledger, [from_document(event.ledger)])
        return self._on_tick() if isinstance(event, e.Tick) else []

    # --- members

    def _on_message(self, message: Message, conn: int) -> list[e.Action]:
        if message["type"] == "HELLO":
            return self._on_hello(message, conn)
        peer = self._roster.hear(message, conn, self._now)
        if peer is None:
            return [e.Hangup(conn)]
        handler = self._messages.get(message["type"])
        return handler(peer, message) if handler else []

    def _on_closed(self, event: e.Closed) -> list[e.Action]:
        peer = self._roster.of(event.conn)
        if peer is None:
            return []
        quick = self._now - peer.heard < self._timing.eof_is_death
        return self._lose(peer, KILLED if quick and not event.silent else SILENT)

    def _on_hello(self, message: Message, conn: int) -> list[e.Action]:
        admission = self._roster.admit(message, conn, self._now)
        peer = admission.peer
        if peer is None or admission.ledger is None:
            return self._put_off(admission)
        self.ledger = union(self.ledger, [admission.ledger])
        actions = [
            *admission.actions,
            # It may have come back before we noticed that it was gone.
            *(self._miss(admission.old, CUT) if admission.old else []),
            self._send(peer.conn, "WELCOME", ledger=self.ledger.to_document()),
        ]
        if admission.returned:
            self._ending.returned(peer.node)
            self._pardoned.add((self._ending.attempt, peer.node))
        self._prepared = max(self._prepared, int(message.get("prepared", -1)))
        self._heed_predecessor(message)
        return [*actions, *self._take_evidence(peer, message)]

    def _put_off(self, admission: Admission) -> list[e.Action]:
        """Answer who is not let in. If it only has to wait for its node rank, both learn what the other knows.

        For either may become the one that counts, and nothing may start without what has been decided.
        """
        if admission.ledger is None:
            return admission.actions
        if self.phase in (Phase.GATHER, Phase.ARMING):
            before, self.ledger = self.ledger, union(self.ledger, [admission.ledger])
            if self.phase is Phase.ARMING and self.ledger != before:
                self._regather()
        books = self.ledger.to_document()
        return [
            replace(action, message={**action.message, "ledger": books})
            if isinstance(action, e.Send)
            else action
            for action in admission.actions
        ]

    def _heed_predecessor(self, message: Message) -> None:
        """Learn how an earlier coordinator was lost."""
        if self._undecided() is not None and message.get("left") == self._ending.attempt:
            self._ending.miss(0, LEFT)
        if not message.get("silent"):
            return
        inc, age = message["silent"]
        if (
            inc != self._identity.inc
        ):  # it may be out of sight only, and its processes live until it notices that
            self._not_before = max(self._not_before, self._now - float(age) + self._timing.fence)
            self._silent_before = True

    def _take_evidence(self, peer: Peer, message: Message) -> list[e.Action]:
        """Take what a member that joins brings along, and give it what it missed."""
        of = message.get("of")
        if self.phase is Phase.VERDICT:
            return self._tell(peer)
        if "evidence" not in message or not isinstance(of, int):
            return []
        if of in self.ledger.records:
            return [self._verdict_for(peer, of)] if self.phase is not Phase.COMMITTING else []
        if of == self._undecided():
            self._ending.see(message.get("step"))
            self._ending.add(peer.node, bool(message.get("ok")), message["evidence"])
        return self._check_ending()

    def _on_leave(self, peer: Peer, _message: Message) -> list[e.Action]:
        """Let a member go. With that of node 0 goes this agent: whoever finds its end knows that it was no kill."""
        others = [each for node, each in sorted(self._roster.peers.items()) if node != peer.node]
        said = [self._send(each.conn, "LEAVE") for each in others] if peer.node == 0 else []
        return [*said, *self._lose(peer, LEFT), e.Hangup(peer.conn)]

    def _lose(self, peer: Peer, how: str) -> list[e.Action]:
        stopping = bool(self._ending.stopping)
        self._roster.remove(peer, how, self._now, self._timing.grace if stopping else 0.0)
        return self._miss(peer, how)

    def _miss(self, peer: Peer, how: str) -> list[e.Action]:
        self._pending.discard(peer.node)
        if self.phase is Phase.ARMING:
            self._regather()
        if self.phase is Phase.VERDICT:
            return self._check_acks()
        if self.phase not in (Phase.RUNNING, Phase.ENDING) or not self._ending.miss(peer.node, how):
            return []
        text = {SILENT: "is silent", KILLED: "was killed, it closed the connection without a word"}
        said: list[e.Action] = [e.Say(f"node {peer.node} {text[how]}")] if how in text else []
        return [*said, *self._end("lost"), *self._check_ending()]

    def _on_heartbeat(self, peer: Peer, message: Message) -> list[e.Action]:
        peer.state, peer.rdzv = str(message.get("state")), str(message.get("rdzv", ""))
        ranks = message.get("ranks")
        peer.ranks, peer.ranks_at = (ranks if isinstance(ranks, list) else []), self._now
        if self.phase in (Phase.RUNNING, Phase.ENDING) and peer.rdzv == self._rdzv:
            for _, step, _, _ in peer.ranks:
                self._ending.see(step)
        in_attempt = self.phase in (Phase.RUNNING, Phase.ENDING) and peer.node not in self._ending.lost
        runs = peer.state in ("run", "drain", "judged") and peer.rdzv == self._rdzv
        unsaid = peer.state == "judged" and peer.node not in self._ending.evidence
        unheard = self.phase is Phase.ENDING and peer.state == "run"
        contradicts = in_attempt and (not runs or unsaid or unheard)
        peer.mismatches = peer.mismatches + 1 if contradicts else 0
        return self._cut_off(peer) if peer.mismatches >= _MISMATCHES else []

    def _cut_off(self, peer: Peer) -> list[e.Action]:
        """Give a member up; an end of the connection without a word would mean that this agent was killed."""
        return [self._send(peer.conn, "CUT"), e.Hangup(peer.conn), *self._lose(peer, SILENT)]

    # --- time

    def _on_tick(self) -> list[e.Action]:
        actions: list[e.Action] = []
        for peer in list(self._roster.peers.values()):
            if self._now - peer.heard > self._timing.peer_deadline:
                actions += self._cut_off(peer)
        tick = self._ticks.get(self.phase)
        actions += tick() if tick else []
        if self._now - self._heartbeat >= self._timing.heartbeat:
            self._heartbeat = self._now
            for node, peer in sorted(self._roster.peers.items()):
                content = {"phase": self.phase.value, "owed": self._owes(node), "step": self._ending.step}
                actions.append(self._send(peer.conn, "HB", **content))
        return actions
