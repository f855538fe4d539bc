"""The first half of a member's machine: its connection to the coordinator; see `member`."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ddpk8s_agent import exitcodes
from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.ledger import Ledger, from_document, union
from ddpk8s_agent.gang.messages import VERSION, Message
from ddpk8s_agent.gang.timing import Timing


class State(Enum):
    """Where a member stands."""

    DIAL = "dial"
    WAIT = "wait"
    ARM = "arm"
    READY = "ready"
    RUN = "run"
    DRAIN = "drain"
    JUDGED = "judged"  # DONE is sent, the verdict has not come
    GONE = "gone"


@dataclass(frozen=True)
class Identity:
    """Who a member is: the launch it belongs to, its place, and what must be the same everywhere.

    Attributes:
        token: Run id and launch id.
        node: Node rank.
        nnodes: Number of nodes.
        nproc: Workers on each node.
        spec_hash: Of everything in the plan that must be alike on all nodes.
        inc: Names this incarnation of the agent.
    """

    token: str
    node: int
    nnodes: int
    nproc: int
    spec_hash: str
    inc: str


class Joining:
    """Connects, is let in or refused, and loses the connection again."""

    def __init__(self, identity: Identity, ledger: Ledger, timing: Timing, now: float) -> None:
        self.identity = identity
        self.ledger = ledger
        self.state = State.DIAL
        self._timing = timing
        self._attempt = ledger.attempt
        self._rdzv = ""
        self._connected = self._welcome = False
        self._problem = ""  # why the coordinator cannot be reached
        self._evidence: Mapping[str, Any] | None = None
        self._step: int | None = None
        self._evidence_of = -1
        self._ok = False
        self._stopping = False
        self._ended_at = self._stopped_at = 0.0
        self._now = self._gate_since = self._heard = self._sent = now
        self._dial_pause = timing.dial[0]
        self._beats: tuple[tuple[int, int | None, float, bool], ...] = ()
        self._mismatches = 0
        self._fresh = True
        self._told = ledger.base
        self._ordered: tuple[int, Mapping[str, Any]] | None = None  # how to leave, once nothing runs
        self._left = -1  # attempt whose coordinator left before its end, because it was asked to
        self._prepared = -1  # newest attempt that others may have started
        self._coordinator = ""
        self._silent: tuple[str, float] | None = None  # a coordinator that may live on, and since when

    def _on_connected(self, _event: e.Event) -> list[e.Action]:
        self._connected = True
        self._heard = self._now
        hello: Message = {
            "nnodes": self.identity.nnodes,
            "nproc": self.identity.nproc,
            "spec": self.identity.spec_hash,
            "token": self.identity.token,
            "ledger": self.ledger.to_document(),
            "state": self.state.value,
            "fresh": self._fresh,
            "prepared": self._prepared,
            "left": self._left,
            "silent": self._silent and [self._silent[0], self._now - self._silent[1]],
        }
        if self._evidence is not None:
            hello |= {
                "evidence": dict(self._evidence),
                "of": self._evidence_of,
                "ok": self._ok,
                "step": self._step,
            }
        return [self._send("HELLO", **hello)]

    def _lose(self, why: str, *, silent: bool = False) -> list[e.Action]:
        """Without a coordinator nobody may train on: it may be starting the next gang."""
        was_connected, was_welcome = self._connected, self._welcome
        self._connected = self._welcome = False
        self._problem = why
        actions: list[e.Action] = []
        if self.state is State.RUN:
            self.state = State.DRAIN
            actions.append(e.Drain("lost", self._grace(self._timing.teardown)))
        elif self.state in (State.WAIT, State.ARM, State.READY):
            self.state = State.DIAL
        if was_connected:
            self._mismatches = 0
            if silent and self._coordinator:
                self._silent = (self._coordinator, self._now)
            said = "lost the agent of node 0" if was_welcome else "no welcome from the agent of node 0"
            actions.append(e.Say(f"{said}: {why}"))
        if was_welcome:  # else somebody else may have its address
            self._gate_since = self._now
            self._dial_pause = self._timing.dial[0]
        pause, self._dial_pause = self._dial_pause, min(2 * self._dial_pause, self._timing.dial[1])
        return [*actions, e.Dial(pause)]

    def _hang_up(self, why: str) -> list[e.Action]:
        """End the connection; an end without a word would mean that this agent was killed."""
        return [self._send("CUT"), *self._lose(why, silent=True)]

    def _on_waiting(self, message: Message) -> list[e.Action]:
        """Another agent holds this node rank: ask again, and know by then what has been decided."""
        self._connected = False
        learned = self._learn(message) if "ledger" in message else []
        return [*learned, e.Say(str(message.get("why"))), e.Dial(self._timing.duplicate_retry)]

    def _on_welcome(self, message: Message) -> list[e.Action]:
        self._welcome = True
        self._dial_pause = self._timing.dial[0]
        self._fresh = False
        actions = self._learn(message)
        if self._evidence is not None and self._evidence_of in self.ledger.records:
            self._evidence = None  # it was decided without us
        if self.state is State.DIAL or (self.state is State.JUDGED and self._evidence is None):
            self.state = State.WAIT
            self._gate_since = self._now
        leave = self._exit_at_end()
        return [*actions, *([self._send("ACK", of=self.ledger.attempt), *leave] if leave else [])]

    def _exit_at_end(self) -> list[e.Action]:
        """Leave if the job is over. Node 0 waits until its coordinator has told everybody."""
        end, bound = self.ledger.end, self.state in (State.RUN, State.DRAIN) or self.identity.node == 0
        return [] if end is None or bound else self._exit(int(end["code"]), end.get("word") or {})

    def _on_reject(self, message: Message) -> list[e.Action]:
        why = str(message.get("why"))
        if message.get("fatal"):
            return self._exit(exitcodes.MISTAKE, {"reason": "GangMismatch", "message": why})
        self._connected = False
        return [e.Say(f"node 0 does not let this node in: {why}"), e.Dial(self._timing.dial[1])]

    def _learn(self, message: Message) -> list[e.Action]:
        """Take the coordinator's ledger in; in the end all have the same."""
        before, self.ledger = self.ledger, union(self.ledger, [from_document(message["ledger"])])
        return [e.Remember(self.ledger.to_document())] if self.ledger != before else []

    def _grace(self, seconds: float) -> float:
        """A stop that was asked for keeps the time that it has."""
        return self._timing.grace if self._stopping else seconds

    def _exit(self, code: int, word: Mapping[str, Any]) -> list[e.Action]:
        self.state = State.GONE
        return [e.Exit(code, word)]

    def _send(self, kind: str, **content: Any) -> e.Action:
        self._sent = self._now
        head = {"v": VERSION, "type": kind, "attempt": self._attempt, "node": self.identity.node}
        return e.Send({**head, "inc": self.identity.inc, **content})
