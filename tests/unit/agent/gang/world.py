"""A simulated cluster: virtual time, connections, agents that run the real machines. See `simulator`."""

import heapq
import random
from collections.abc import Callable
from typing import Any

from tests.unit.agent.gang.recorder import Recorder
from tests.unit.agent.gang.wires import TIMING, Agent, Wires
from tests.unit.agent.gang.workers import Run, Workers

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.coordinator import Coordinator
from ddpk8s_agent.gang.deciding import Decider
from ddpk8s_agent.gang.joining import Identity, State
from ddpk8s_agent.gang.ledger import Ledger, from_document
from ddpk8s_agent.gang.member import Member

TICK = 0.5


class World(Wires):
    """Everything there is."""

    def __init__(self, seed: int, n: int, *, shared: bool, decider: Decider, trace: bool) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        self.now, self.n, self.shared, self.decider = 0.0, n, shared, decider
        self.heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self.serial = 0
        self.volume: dict[str, Any] | None = None
        self.files: list[dict[str, Any] | None] = [None] * n
        self.slots: list[Agent | None] = [None] * n
        self.ghosts: list[Agent] = []
        self.runs: dict[str, Run] = {}
        self.commits_late = 0.0
        self.volume_fails = False
        self.codec = seed % 10 == 0
        self.saved_step = 0
        self.healthy = False  # faults are over
        self.fates: dict[str, float] = {}
        self.recorder = Recorder(self)
        self.trace: list[str] | None = [] if trace else None
        self.watch: Callable[[Agent, e.Action], None] = lambda _agent, _action: None
        self.left: Callable[[Agent, int], None] = lambda _agent, _code: None

    # --- time

    def at(self, delay: float, what: Callable[..., None], *args: Any) -> None:
        self.serial += 1
        heapq.heappush(self.heap, (self.now + delay, self.serial, what, args))

    def run(self, until: float) -> None:
        while self.heap and self.heap[0][0] <= until:
            self.now, _, what, args = heapq.heappop(self.heap)
            what(*args)

    def note(self, text: Callable[[], str]) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.now:8.2f} {text()}")

    # --- agents

    def birth(self, node: int, *, keep_file: bool) -> None:
        """Start an agent, in the pod that was there, or in a new one."""
        if not keep_file:
            self.files[node] = None
        self.recorder.birth()
        ledger = Ledger("token")
        for document in (self.files[node], self.volume if self.shared else None):
            if document is not None:
                ledger = ledger.merge(from_document(document))
        self.serial += 1
        inc = f"{node}.{self.serial:07d}"
        identity = Identity("token", node, self.n, 2, "hash", inc)
        member = Member(identity, ledger, TIMING, self.now)
        boss = None
        if node == 0:
            boss = Coordinator(identity, ledger, TIMING, self.decider, range(29500, 29510), self.now)
        agent = Agent(node, inc, member, boss, reached=ledger.attempt)
        self.slots[node] = agent
        self.note(lambda: f"birth of {inc}, ledger {ledger.to_document()}")
        self.at(0.05, self.dial, agent, agent.dial)
        self.at(self.rng.random() * TICK, self._tick, agent)

    def death(self, agent: Agent, why: str) -> None:
        """An agent is gone, and all its processes with it."""
        if not agent.alive:
            return
        agent.alive = False
        self.note(lambda: f"{agent.inc} is gone: {why}")
        if agent.workers:
            agent.workers.vanish()
        if agent.wire:
            self.close(agent.wire, "up")
        for wire in list(agent.wires.values()):
            self.close(wire, "down")

    def post(self, agent: Agent, machine: Any, event: e.Event) -> None:
        """Give a machine an event, and do what it asks for; then what comes of that on the local link."""
        if not agent.alive or machine is None:
            return
        agent.queue.append((machine, event))
        if len(agent.queue) > 1:
            return
        while agent.queue and agent.alive:
            machine, event = agent.queue[0]
            for action in machine.handle(event, self.now):
                self._do(agent, machine is agent.member, action)
                if not agent.alive:
                    return
            agent.queue.popleft()
        if agent.leaves and agent.alive:
            self._exit(agent, agent.leaves)

    def _exit(self, agent: Agent, action: e.Exit) -> None:
        self.death(agent, f"exit {action.code} {action.word}")
        if agent in self.slots:
            self.files[agent.node] = None  # nobody starts in this pod again
        self.left(agent, action.code)

    def _tick(self, agent: Agent) -> None:
        if not agent.alive:
            return
        if agent.coordinator:
            self.post(agent, agent.coordinator, e.Tick())
        if agent.workers and agent.alive and agent.member.state is State.RUN:
            self.post(agent, agent.member, e.Beats(agent.workers.beats()))
        if self.volume and self.now % 10 < TICK and agent.inc not in self.blocked:
            self.post(agent, agent.coordinator or agent.member, e.Learned(self.volume))
        self.post(agent, agent.member, e.Tick())
        self.at(TICK, self._tick, agent)

    # --- what machines ask for

    def _do(self, agent: Agent, by_member: bool, action: e.Action) -> None:
        if self.trace is not None and not (isinstance(action, e.Send) and action.message["type"] == "HB"):
            self.note(lambda: f"  {agent.inc} {'member' if by_member else 'coord'}: {_short(action)}")
        match action:
            case e.Send():
                self.send(agent, by_member, action)
            case e.Hangup():
                self.hang_up(agent, action.conn)
            case e.Dial():
                self.redial(agent, action.after)
            case e.Exit():
                self.recorder.exit(agent, action)
                agent.leaves = action  # what it has said just now is still sent
            case e.Arm() | e.Start() | e.Drain() | e.Stop():
                self._work(agent, action)
            case _:
                self._keep(agent, action)
        self.watch(agent, action)

    def _keep(self, agent: Agent, action: e.Action) -> None:
        if isinstance(action, e.Commit):
            self._commit(agent, action)
        elif isinstance(action, e.Remember):
            self.recorder.ledger(agent, action.ledger)
            if agent in self.slots:
                self.files[agent.node] = dict(action.ledger)
        elif isinstance(action, e.Told):
            self.recorder.told(agent, action)

    def _work(self, agent: Agent, action: e.Action) -> None:
        match action:
            case e.Arm():
                busy = self.rng.random() < self.fates.get("unready", 0.0)
                problem = "the port is taken" if busy else ""
                if agent.workers and agent.workers.alive:
                    self.recorder.fail(f"{agent.inc} arms while its workers live")
                delay = self.rng.random() * (8 if self.rng.random() < 0.03 else 1)
                self.recorder.armed(agent, action.rdzv, problem)
                self.at(delay, self.post, agent, agent.member, e.Armed(action.rdzv, problem))
            case e.Start():
                run = self.runs.setdefault(action.rdzv, Run(self, action.attempt, action.rdzv))
                self.recorder.start(agent, action)
                agent.workers = Workers(self, agent, run)
                run.join(agent.workers)
            case e.Drain():
                assert agent.workers, "drained without workers"
                agent.workers.drain(action.why, action.grace)
            case e.Stop():
                assert agent.workers, "stopped without workers"
                agent.workers.stop()

    def _commit(self, agent: Agent, action: e.Commit) -> None:
        delay = self.rng.random() * 0.3
        if self.rng.random() < self.commits_late:
            delay = self.rng.choice((1.0, 5.0, 1e9))
        self.volume_fails = self.volume_fails or delay >= 1.0 or (self.shared and agent.inc in self.blocked)
        self.at(delay * self.rng.random(), self._write, agent, action)
        if not (self.shared and agent.inc in self.blocked):
            self.at(delay, self.post, agent, agent.coordinator, e.Committed(action.serial, self.shared))

    def _write(self, agent: Agent, action: e.Commit) -> None:
        # A pod that was replaced cannot reach the volume any more.
        if self.shared and agent.alive and agent in self.slots and agent.inc not in self.blocked:
            old = self.volume and from_document(self.volume)
            new = from_document(action.ledger)
            merged = (old.merge(new) if old else new).to_document()
            self.recorder.ledger(agent, merged)
            self.volume = merged


def _short(action: e.Action) -> str:
    text = str(action)
    return text if len(text) < 700 else text[:700] + " ..."
