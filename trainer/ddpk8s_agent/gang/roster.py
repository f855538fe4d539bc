"""Who is here: admission, signs of life, losses. The coordinator's view of its members."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.joining import Identity
from ddpk8s_agent.gang.ledger import Ledger, from_document
from ddpk8s_agent.gang.messages import VERSION, Message
from ddpk8s_agent.gang.timing import Timing

_BUSY = ("run", "drain")
_SAY_STRANGERS = 60.0
SILENT, KILLED, LEFT, CUT, STUCK = "silent", "killed", "left", "cut", "stuck"
"""How a node is lost: no sign for too long; its connection ended without a word; it said that it leaves; it lost
its connection for a while; its processes do not end."""
GONE, UNSTARTED = "gone", "unstarted"
"""What a later coordinator finds: nobody saw how the node was lost; or it is here, but never got the start."""


@dataclass
class Peer:
    """A member that is here.

    Attributes:
        node: Its node rank.
        conn: The connection to it.
        inc: Its incarnation.
        heard: When it last gave a sign of life.
        state: The state of its machine, as last heard.
        rdzv: The start it is in, as last heard.
        ranks: Its last word on its ranks, and when that was.
        mismatches: Heartbeats in a row that contradict what it should be doing.
        fresh: Whether it is new: an older holder of its node rank may have processes somewhere.
    """

    node: int
    conn: int
    inc: str
    heard: float
    state: str = "dial"
    rdzv: str = ""
    ranks: list[list[Any]] = field(default_factory=list)
    ranks_at: float = 0.0
    mismatches: int = 0
    fresh: bool = False

    @property
    def busy(self) -> bool:
        """Whether processes of an attempt still live there."""
        return self.state in _BUSY


@dataclass(frozen=True)
class Admission:
    """What came of a HELLO: answers, and whoever is in.

    A `ledger` without a `peer` is that of a member that has to wait. `old` if that member still is here, on
    another connection; `returned` if it was here before.
    """

    actions: list[e.Action]
    peer: Peer | None = None
    ledger: Ledger | None = None
    old: Peer | None = None
    returned: bool = False


class Roster:
    """All members that are connected, by node rank."""

    def __init__(self, identity: Identity, timing: Timing) -> None:
        self.peers: dict[int, Peer] = {}
        self._nodes: dict[int, int] = {}  # by connection: every message asks for it
        # Until when processes of lost members may still live, by node rank: which incarnation, and the time.
        self.fences: dict[int, tuple[str, float]] = {}
        self._identity = identity
        self._timing = timing
        self._said_stranger = float("-inf")
        self._newest: dict[int, str] = {}  # which incarnation was here last

    @property
    def missing(self) -> list[int]:
        """Node ranks that are not here."""
        return [node for node in range(self._identity.nnodes) if node not in self.peers]

    def of(self, conn: int) -> Peer | None:
        """Return the member behind a connection."""
        return self.peers.get(self._nodes.get(conn, -1))

    def hear(self, message: Message, conn: int, now: float) -> Peer | None:
        """Take a sign of life; return who gave it, if it is a member."""
        peer = self.of(conn)
        if peer is None or message.get("inc") != peer.inc:
            return None
        peer.heard = now
        return peer

    def remove(self, peer: Peer, how: str, now: float, grace: float = 0.0) -> None:
        """Take a member out that is lost; its processes may have been given a `grace` to end in."""
        self._forget(self.peers.get(peer.node))
        if how in (SILENT, CUT, STUCK):
            # Nobody knows whether its processes live. It ends them itself when it hears nothing, from now on at
            # the latest; and if this very incarnation comes back, it says how they are.
            extra = max(0.0, grace - self._timing.teardown)
            self.fences[peer.node] = (peer.inc, now + self._timing.fence + extra)

    def _forget(self, peer: Peer | None) -> None:
        if peer is not None:
            del self.peers[peer.node]
            if self._nodes.get(peer.conn) == peer.node:
                del self._nodes[peer.conn]

    def fenced(self, now: float) -> bool:
        """Return whether somewhere processes of a silent member may still live."""
        return any(now < until for _, until in self.fences.values())

    def admit(self, message: Message, conn: int, now: float) -> Admission:
        """Decide on a HELLO. A member of another launch, or of another plan, never gets in."""
        mine, node, inc = self._identity, int(message["node"]), str(message.get("inc"))
        if not hmac.compare_digest(str(message.get("token")).encode(), mine.token.encode()):
            return self._refuse_stranger(message, conn, now)
        if problem := self._mismatch(message):
            return Admission([_reject(conn, problem, fatal=True), e.Hangup(conn), e.Say(problem)])
        try:
            ledger = from_document(message["ledger"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return Admission([_reject(conn, "its ledger cannot be read", fatal=False), e.Hangup(conn)])
        old = self.peers.get(node)
        if old and old.inc != inc:
            why = f"node rank {node} is taken by an agent that lives; trying again"
            refusal: list[e.Action] = [
                e.Send(_line("WAITING", duplicate=True, why=why), conn),
                e.Hangup(conn),
            ]
            return Admission(refusal, ledger=ledger)
        if self.fences.get(node, ("", 0.0))[0] == inc:
            del self.fences[node]
        returned, self._newest[node] = self._newest.get(node) == inc, inc
        fresh = bool(message.get("fresh")) and old is None
        self._forget(old)
        self.peers[node] = Peer(node, conn, inc, now, state=str(message.get("state", "dial")), fresh=fresh)
        self._nodes[conn] = node
        if old is None or old.conn == conn:
            return Admission([], self.peers[node], ledger, returned=returned)
        return Admission([e.Hangup(old.conn)], self.peers[node], ledger, old, returned)

    def _refuse_stranger(self, message: Message, conn: int, now: float) -> Admission:
        actions: list[e.Action] = [_reject(conn, "it belongs to another run", fatal=False), e.Hangup(conn)]
        if now - self._said_stranger >= _SAY_STRANGERS:
            self._said_stranger = now
            actions.append(
                e.Say(f"refused an agent of another run, which calls itself node {message['node']}")
            )
        return Admission(actions)

    def _mismatch(self, message: Message) -> str:
        mine, node = self._identity, message["node"]
        if not 0 <= node < mine.nnodes:
            return f"node rank {node} does not exist: there are {mine.nnodes} nodes, counted from 0"
        pairs: Mapping[str, tuple[Any, Any]] = {
            "spec.topology.nnodes": (message.get("nnodes"), mine.nnodes),
            "spec.topology.nprocPerNode": (message.get("nproc"), mine.nproc),
            "the job (its command, environment or settings)": (message.get("spec"), mine.spec_hash),
        }
        for what, (theirs, ours) in pairs.items():
            if theirs != ours:
                return f"{what} differs: {theirs} on node {node}, {ours} on node 0"
        return ""


def _reject(conn: int, why: str, *, fatal: bool) -> e.Send:
    return e.Send(_line("REJECT", why=why, fatal=fatal), conn)


def _line(kind: str, **content: Any) -> Message:
    return {"v": VERSION, "type": kind, "attempt": -1, "node": 0, "inc": "", **content}
