"""The part of the coordinator's machine that gathers all members and starts them as one; see `coordinator`."""

from typing import Any

from ddpk8s_agent import exitcodes
from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.deciding import Decider
from ddpk8s_agent.gang.ending import Ending
from ddpk8s_agent.gang.joining import Identity
from ddpk8s_agent.gang.judging import Judging, Phase
from ddpk8s_agent.gang.ledger import Ledger
from ddpk8s_agent.gang.messages import Message
from ddpk8s_agent.gang.roster import Peer
from ddpk8s_agent.gang.timing import Timing


class Gating(Judging):
    """GATHER and ARMING."""

    def __init__(
        self, identity: Identity, ledger: Ledger, timing: Timing, decider: Decider, ports: range, now: float
    ) -> None:
        super().__init__(identity, ledger, timing, decider, now)
        self._ports = ports
        self._port = self._round = 0
        self._ready: set[int] = set()
        self.mark = ""  # what this agent left in the checkpoint directory, for the others to see
        self._cannot = ("", float("-inf"))
        self._born = now
        self._prepared = -1
        self._bade: set[int] = set()

    def _gather(self) -> list[e.Action]:
        roster, timing = self._roster, self._timing
        if self.ledger.end is not None:
            return self._bid_farewell(self.ledger.end)
        if self._now - self._since > timing.start_deadline and self._now > self._not_before:
            return self._give_up()
        if roster.missing or any(peer.busy for peer in roster.peers.values()):
            return self._say_waiting()
        if self._undecided() is not None:
            return self._decide()
        if self._now < self._not_before or roster.fenced(self._now) or self._may_be_elsewhere():
            return []
        return self._prepare()

    def _may_be_elsewhere(self) -> bool:
        """Return whether processes may live that only an earlier coordinator knew of.

        That is so when nobody saw the newest attempt end on the node of a member that is new. Until the older
        holder of that node rank has surely noticed that it is alone, nothing starts.
        """
        if self._now > self._born + self._timing.fence:
            return False
        newest = self.ledger.records.get(self.ledger.attempt)
        unseen = set(newest.unseen) if newest is not None else set()
        if max(self._prepared, self.ledger.base) > self.ledger.attempt:  # a start that few have heard of
            unseen |= set(range(1, self._identity.nnodes))
        return any(peer.fresh and node in unseen for node, peer in self._roster.peers.items())

    def _prepare(self) -> list[e.Action]:
        self.phase, self._since_arming = Phase.ARMING, self._now
        self._round += 1
        self._ready = set()
        attempt = self.ledger.attempt + 1
        # A new name and port for each start: nothing of an earlier one can be met.
        self._rdzv = f"{self._identity.token}-{attempt}-{self._round}-{self._identity.inc[-8:]}"
        self._port = self._ports[(attempt + self._round) % len(self._ports)] if len(self._ports) else 0
        return self._broadcast("PREPARE", attempt=attempt, port=self._port, mark=self.mark)

    def _on_ready(self, peer: Peer, message: Message) -> list[e.Action]:
        if self.phase is not Phase.ARMING or message.get("rdzv") != self._rdzv:
            return []
        self._ready.add(peer.node)
        if len(self._ready) < self._identity.nnodes:
            return []
        self.phase = Phase.RUNNING
        self._started = self._now
        self.ledger = self.ledger.started(self.ledger.attempt + 1)
        self._ending, self._outcome, self._finish = (
            Ending(self.ledger.attempt, pardoned=self._pardoned),
            None,
            None,
        )
        for each in self._roster.peers.values():
            each.state, each.rdzv, each.mismatches, each.ranks = "run", self._rdzv, 0, []
            each.fresh = False  # whatever its older holder left behind is gone
        # With the books, which until now only those have that brought them.
        content = {"attempt": self.ledger.attempt, "port": self._port, "ledger": self.ledger.to_document()}
        return [self._commit(), *self._broadcast("START", **content)]

    def _on_not_ready(self, peer: Peer, message: Message) -> list[e.Action]:
        if self.phase is not Phase.ARMING or message.get("rdzv") != self._rdzv:
            return []
        why = str(message.get("why"))
        if message.get("mistake"):
            return self._end_by_mistake(why, message.get("hint"))
        self._regather()
        self._not_before = max(self._not_before, self._now + 1.0)
        text, (said, when) = f"node {peer.node} cannot start yet: {why}", self._cannot
        if text == said and self._now - when < self._timing.say_waiting:
            return []
        self._cannot = (text, self._now)
        return [e.Say(text)]

    def _end_by_mistake(self, why: str, hint: Any) -> list[e.Action]:
        """End the job before it starts: what a node found does not go away by itself."""
        self.phase = Phase.OVER
        word: dict[str, Any] = {"reason": "Mistake", "message": why, "hint": hint}
        return self._broadcast("EXIT", code=exitcodes.MISTAKE, word=word)

    def _regather(self) -> None:
        self.phase = Phase.GATHER
        self._rdzv = ""

    def _tick_arming(self) -> list[e.Action]:
        if self._now - self._since_arming > self._timing.arm:
            self._regather()
        return []

    def _say_waiting(self) -> list[e.Action]:
        missing, all_nodes = self._roster.missing, self._identity.nnodes
        if not missing or self._now - self._said < self._timing.say_waiting:
            return []
        self._said = self._now
        nodes = ", ".join(map(str, missing[:20])) + (" ..." if len(missing) > 20 else "")
        plural = "s" if len(missing) > 1 else ""
        here = f"{all_nodes - len(missing)} of {all_nodes} are here"
        return [e.Say(f"waiting for node rank{plural} {nodes} ({here}), {self._now - self._since:.0f} s")]

    def _give_up(self) -> list[e.Action]:
        missing = self._roster.missing
        nodes = (
            f"node rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))} did not join"
            if missing
            else "the gang did not start"
        )
        message = f"{nodes} within {self._timing.start_deadline:.0f} s (spec.failurePolicy.startDeadline)"
        self.phase = Phase.OVER
        word: dict[str, Any] = {"reason": "StartDeadline", "message": message}
        return self._broadcast("EXIT", code=exitcodes.FAILED, word=word)

    def _bid_farewell(self, end: Any) -> list[e.Action]:
        """The job was over before this agent came: tell the others as they come, and this agent last."""
        content = {"code": int(end["code"]), "word": dict(end.get("word") or {})}
        here = {node for node in self._roster.peers if node != 0} - self._bade
        self._bade |= here
        actions = [self._send(self._roster.peers[node].conn, "EXIT", **content) for node in sorted(here)]
        late = self._now - self._since > self._timing.acknowledge + self._timing.fence
        own = self._roster.peers.get(0)
        if own is None or own.busy or (len(self._bade) < self._identity.nnodes - 1 and not late):
            return actions
        self.phase = Phase.OVER
        return [*actions, self._send(own.conn, "EXIT", **content)]
