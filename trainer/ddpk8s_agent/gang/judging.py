"""The middle of the coordinator's machine: from the running attempt to all evidence; see `coordinator`."""

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.ending import Ending
from ddpk8s_agent.gang.hang import silence
from ddpk8s_agent.gang.messages import Message
from ddpk8s_agent.gang.roster import STUCK, Peer
from ddpk8s_agent.gang.telling import Phase, Telling

__all__ = ["Judging", "Phase"]


class Judging(Telling):
    """RUNNING and ENDING."""

    def _undecided(self) -> int | None:
        """The attempt that evidence is wanted of."""
        undecided = self.ledger.undecided
        if undecided is not None and self._ending.attempt != undecided:
            self._ending = Ending(undecided, resumed=True, pardoned=self._pardoned)
        return undecided

    def _on_suspect(self, peer: Peer, message: Message) -> list[e.Action]:
        if self.phase not in (Phase.RUNNING, Phase.ENDING) or message["attempt"] != self._ending.attempt:
            return []
        self._ending.suspected(peer.node)
        return self._end("stop" if self._ending.stopping else "failure")

    def _on_done(self, peer: Peer, message: Message) -> list[e.Action]:
        peer.state = "judged"
        attempt = message["attempt"]
        if attempt in self.ledger.records:
            if self.phase is Phase.VERDICT:
                return self._tell(peer)
            return [] if self.phase is Phase.COMMITTING else [self._verdict_for(peer, attempt)]
        if attempt != self._undecided():
            return []
        ok = bool(message.get("ok"))
        self._ending.add(peer.node, ok, message.get("evidence") or {})
        if self.phase is Phase.RUNNING and not ok:
            actions = self._end("stop" if self._ending.stopping else "failure")
            return [*actions, *self._check_ending()]
        if self.phase is Phase.RUNNING and self._finish is None:
            self._finish = self._now + self._timing.finish
        return self._check_ending()

    def _on_stopping(self, peer: Peer, message: Message) -> list[e.Action]:
        if self.phase in (Phase.RUNNING, Phase.ENDING) and message["attempt"] == self._ending.attempt:
            self._ending.stopped(peer.node)
            if self.phase is Phase.ENDING:
                self._deadline = max(self._deadline, self._now + self._timing.done + self._timing.grace)
        return []

    def _end(self, why: str) -> list[e.Action]:
        """End the attempt everywhere."""
        if self.phase is not Phase.RUNNING:
            return []
        self.phase = Phase.ENDING
        grace = self._timing.grace if why == "stop" else self._timing.teardown
        self._deadline = self._now + self._timing.done + grace - self._timing.teardown
        if self._ending.stopping:
            self._deadline = max(self._deadline, self._now + self._timing.done + self._timing.grace)
        return self._broadcast("END", attempt=self._ending.attempt, why=why, grace=grace)

    def _check_ending(self) -> list[e.Action]:
        """Decide when everything is known that can be known."""
        ending, peers = self._ending, self._roster.peers
        if self.phase not in (Phase.RUNNING, Phase.ENDING):
            return []
        for node in range(self._identity.nnodes):
            back = node in peers and peers[node].busy  # its processes end, then it says how
            if node not in ending.evidence and (node not in ending.lost or back):
                return []
        return self._decide()

    def _tick_running(self) -> list[e.Action]:
        if self._finish is not None and self._now > self._finish:
            self._ending.unfinished = True
            return self._end("finish")
        silent = silence(
            self._roster.peers.values(), self._now, self._started, sees_start=self._decider.sees_start
        )
        if self._timing.hang is None or silent is None or silent < self._timing.hang:
            return []
        self._ending.hung(silent)
        text = f"no rank made progress for {silent:.0f} s: taking stacks, then starting again"
        return [e.Say(text), *self._end("hang")]

    def _tick_ending(self) -> list[e.Action]:
        if self._now <= self._deadline:
            return []
        actions: list[e.Action] = []
        for node, peer in list(self._roster.peers.items()):
            if node not in self._ending.evidence:
                self._ending.miss(node, STUCK)
                self._roster.remove(peer, STUCK, self._now)
                actions += [self._send(peer.conn, "CUT"), e.Hangup(peer.conn)]
        return [*actions, *self._decide()]
