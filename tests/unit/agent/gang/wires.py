"""Simulated connections: delayed, broken, swallowed, cut off. See `simulator`."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.messages import decode, encode
from ddpk8s_agent.gang.timing import Timing

if TYPE_CHECKING:
    from tests.unit.agent.gang.workers import Workers

    from ddpk8s_agent.gang.coordinator import Coordinator
    from ddpk8s_agent.gang.member import Member

TIMING = Timing(
    heartbeat=1.0,
    peer_deadline=5.0,
    eof_is_death=1.6,
    connect=1.0,
    dial=(0.2, 2.0),
    arm=6.0,
    teardown=2.0,
    done=12.0,
    acknowledge=5.0,
    finish=12.0,
    commit=2.0,
    start_deadline=90.0,
    hang=8.0,
    grace=10.0,
)


@dataclass
class Wire:
    """One connection; each direction keeps its order. Ends are `up` (to the coordinator) and `down`."""

    number: int
    client: Agent
    server: Agent
    open: dict[str, bool] = field(default_factory=lambda: {"up": True, "down": True})
    newest: dict[str, float] = field(default_factory=lambda: {"up": 0.0, "down": 0.0})
    held: dict[str, list[Any]] = field(default_factory=lambda: {"up": [], "down": []})

    def sender(self, way: str) -> Agent:
        return self.client if way == "up" else self.server

    def receiver(self, way: str) -> Agent:
        return self.server if way == "up" else self.client


@dataclass
class Agent:
    """One incarnation of the agent of a node."""

    node: int
    inc: str
    member: Member
    coordinator: Coordinator | None
    alive: bool = True
    wire: Wire | None = None
    wires: dict[int, Wire] = field(default_factory=dict)
    dial: int = 0
    workers: Workers | None = None
    asked: bool = False
    reached: int = -1
    leaves: e.Exit | None = None
    queue: deque[tuple[Any, e.Event]] = field(default_factory=deque)


class Wires:
    """All connections; what it needs of the world comes from there."""

    now: float
    rng: random.Random
    slots: list[Agent | None]
    ghosts: list[Agent]
    serial: int

    def __init__(self) -> None:
        self.blocked: dict[str, set[str]] = {}
        self.loss = self.double = 0.0
        self.stale_names = self.codec = False
        self.clean = True  # no fault of the network so far

    def at(self, delay: float, what: Callable[..., None], *args: Any) -> None:
        raise AssertionError("the world has the time")

    def post(self, agent: Agent, machine: Any, event: e.Event) -> None:
        raise AssertionError("the world has the machines")

    def note(self, text: Callable[[], str]) -> None:
        raise AssertionError("the world has the trace")

    @property
    def agents(self) -> list[Agent]:
        return [agent for agent in (*self.slots, *self.ghosts) if agent is not None and agent.alive]

    def hang_up(self, agent: Agent, conn: int) -> None:
        if conn == 0:
            agent.queue.append((agent.member, e.Disconnected("it hung up")))
        elif wire := agent.wires.pop(conn, None):
            self.close(wire, "down")

    def redial(self, agent: Agent, after: float) -> None:
        agent.dial += 1
        if agent.wire:
            self.close(agent.wire, "up")
            agent.wire = None
        self.at(after, self.dial, agent, agent.dial)

    def dial(self, agent: Agent, number: int) -> None:
        if not agent.alive or number != agent.dial:
            return
        if agent.coordinator:
            self.post(agent, agent.member, e.Connected())
            return
        server = self.slots[0]
        if self.stale_names and self.rng.random() < 0.3:
            # The address of the pod before: nobody answers there, or the one that answers is cut off.
            server = next(
                (ghost for ghost in self.ghosts if ghost.node == 0 and ghost.inc in self.blocked), server
            )
        if server is None or not server.alive:
            self.at(0.05, self._not_dialed, agent, number, "refused")
        elif self._is_blocked(agent, server) or self._is_blocked(server, agent):
            self.at(TIMING.connect, self._not_dialed, agent, number, "timed out")
        else:
            self.serial += 1
            agent.wire = wire = Wire(self.serial, agent, server)
            server.wires[wire.number] = wire
            self.post(agent, agent.member, e.Connected())

    def _not_dialed(self, agent: Agent, number: int, why: str) -> None:
        if number == agent.dial:
            self.post(agent, agent.member, e.Disconnected(why))

    def _is_blocked(self, sender: Agent, receiver: Agent) -> bool:
        return "out" in self.blocked.get(sender.inc, ()) or "in" in self.blocked.get(receiver.inc, ())

    def send(self, agent: Agent, by_member: bool, action: e.Send) -> None:
        message = decode(encode(action.message)) if self.codec else action.message
        if by_member and agent.coordinator:
            agent.queue.append((agent.coordinator, e.Received(message, 0)))
            return
        if not by_member and action.conn == 0:
            agent.queue.append((agent.member, e.Received(message)))
            return
        wire = agent.wire if by_member else agent.wires.get(action.conn)
        if wire is None:
            return
        if message["type"] != "LEAVE" and self.rng.random() < self.loss:
            self.note(lambda: f"  lost: {message['type']}")
            return
        for _ in range(2 if self.rng.random() < self.double else 1):
            self._put(wire, "up" if by_member else "down", message)

    def _put(self, wire: Wire, way: str, what: Any) -> None:
        delay = self.rng.random() * (1.5 if self.rng.random() < 0.02 else 0.05)
        wire.newest[way] = max(wire.newest[way] + 1e-6, self.now + delay)
        self.at(wire.newest[way] - self.now, self._deliver, wire, way, what)

    def _deliver(self, wire: Wire, way: str, what: Any) -> None:
        sender, receiver = wire.sender(way), wire.receiver(way)
        if self.blocked and (wire.held[way] or self._is_blocked(sender, receiver)):
            wire.held[way].append(what)
            return
        mine = wire.open["down" if way == "up" else "up"]
        if not receiver.alive or not mine:
            return
        if what is None:
            self._end_of(wire, way, silent=False)
        elif way == "up":
            self.post(receiver, receiver.coordinator, e.Received(what, wire.number))
        else:
            self.post(receiver, receiver.member, e.Received(what))

    def _end_of(self, wire: Wire, way: str, *, silent: bool) -> None:
        """The other side is gone; this one closes, too."""
        receiver = wire.receiver(way)
        if way == "up":
            wire.open["down"] = False
            if receiver.wires.pop(wire.number, None):
                self.post(receiver, receiver.coordinator, e.Closed(wire.number, silent))
        else:
            wire.open["up"] = False
            if receiver.wire is wire:
                receiver.wire = None
                self.post(receiver, receiver.member, e.Disconnected("closed", silent))

    def close(self, wire: Wire, way: str) -> None:
        """Close an end; the other side reads what was sent, and then the end."""
        if wire.open[way]:
            wire.open[way] = False
            self._put(wire, way, None)

    def cut(self, wire: Wire) -> None:
        """Break a connection: what is under way is lost, both sides are told."""
        for way in ("up", "down"):
            if wire.open["down" if way == "up" else "up"] and wire.receiver(way).alive:
                self._end_of(wire, way, silent=False)

    def block(self, agent: Agent, ways: set[str]) -> None:
        self.clean = False
        self.blocked.setdefault(agent.inc, set()).update(ways)
        self.note(lambda: f"black hole for {agent.inc}: {ways}")

    def heal(self, agent: Agent) -> None:
        """The network is whole again: what was sent into the hole arrives late."""
        self.blocked.pop(agent.inc, None)
        self.note(lambda: f"{agent.inc} can be reached again")
        wires = [*agent.wires.values(), *([agent.wire] if agent.wire else [])]
        wires += [wire for other in self.agents for wire in other.wires.values() if wire.client is agent]
        for wire in {each.number: each for each in wires}.values():
            for way in ("up", "down"):
                held, wire.held[way] = wire.held[way], []
                for what in held:
                    self._put(wire, way, what)
