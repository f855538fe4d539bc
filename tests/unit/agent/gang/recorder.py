"""Watches a simulated cluster from outside, and knows what really happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.ledger import CHARGED

if TYPE_CHECKING:
    from tests.unit.agent.gang.wires import Agent
    from tests.unit.agent.gang.world import World


class Recorder:
    """Notes what was seen by anybody; `problems` holds what must never happen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.problems: list[str] = []
        self.ready: dict[str, set[int]] = {}
        self.seen: dict[int, tuple[str, list[Agent]]] = {}
        self.deserved: dict[int, set[str]] = {}
        self.stopped_first: set[int] = set()
        self.stopped: set[int] = set()
        self.kills: dict[int, int] = {}
        self.exits: list[tuple[str, int, bool, bool]] = []
        self.end: int | None = None
        self.end_holders: list[Agent] = []
        self.finished = False
        self.gone_for_good = False
        self.starts = 0
        self.doubtful: set[int] = set()  # told by a gang with an agent whose pod was replaced
        self.forgotten: set[str] = set()  # cut off, and nobody that is left knows that it ever ran

    def fail(self, text: str) -> None:
        self.problems.append(f"at {self.world.now:.2f}: {text}")
        self.world.note(lambda: f"PROBLEM: {text}")

    def deserves(self, attempt: int, why: str, *, stopped: float | None = None) -> None:
        self.deserved.setdefault(attempt, set()).add(why)
        if stopped is not None and self.world.now - stopped > 3.0:
            self.stopped_first.add(attempt)

    # --- starts

    def armed(self, agent: Agent, rdzv: str, problem: str) -> None:
        if not problem:
            self.ready.setdefault(rdzv, set()).add(agent.node)

    def start(self, agent: Agent, action: e.Start) -> None:
        self.starts += 1
        if len(self.ready.get(action.rdzv, ())) < self.world.n:
            self.fail(f"{agent.inc} starts {action.rdzv}, and not all are ready")
        for other in self.world.agents:
            if other.inc in self.forgotten:
                continue
            if other.workers and other.workers.alive and other.workers.run.rdzv != action.rdzv:
                self.fail(
                    f"{agent.inc} starts {action.rdzv} while {other.workers.run.rdzv} lives on {other.inc}"
                )
        if action.attempt <= agent.reached:
            self.fail(f"{agent.inc} starts attempt {action.attempt} after {agent.reached}")
        agent.reached = action.attempt
        if self.world.volume and agent in self.world.slots and action.attempt < self.world.volume["attempt"]:
            self.fail(f"attempt {action.attempt} starts, the volume knows of {self.world.volume['attempt']}")

    # --- records

    def ledger(self, agent: Agent, document: Mapping[str, Any]) -> None:
        """Check a copy that somebody has; a ghost's pod is gone for everybody, it tells nobody."""
        if agent not in self.world.slots:
            return
        agent.reached = max(
            agent.reached, document["attempt"] - (document["attempt"] not in self._decided(document))
        )
        for key, record in document["records"].items():
            self._record(agent, int(key), record)
        if document["end"] is not None:
            code = document["end"]["code"]
            if self.end not in (None, code) and self._end_remembered():
                self.fail(f"the job ends with {code}, and with {self.end}")
            if self.end != code:
                self.end, self.end_holders = code, []
            self.end_holders.append(agent)

    def _decided(self, document: Mapping[str, Any]) -> set[int]:
        return {int(key) for key in document["records"]}

    def _record(self, agent: Agent, attempt: int, record: Mapping[str, Any]) -> None:
        kind = record["kind"]
        known, holders = self.seen.get(attempt, (kind, []))
        if self._haunted():
            self.doubtful.add(attempt)
        if known != kind and attempt not in self.doubtful and self._remembered(attempt, known, holders):
            self.fail(f"{agent.inc} sees attempt {attempt} as {kind}, it was {known}")
            return
        if attempt in self.seen and known == kind:
            holders.append(agent)
            return
        self.seen[attempt] = (kind, [agent])
        self.world.note(lambda: f"attempt {attempt} is {kind}: {record.get('why')}")
        if kind != CHARGED:
            return
        why = record.get("why", "")
        excused = attempt in self.deserved
        if "second time" in why:
            # Where the volume failed, what it last heard of an attempt that was stopped is its start.
            excused = max(self.kills.values(), default=0) >= 2 or self.world.volume_fails
        barren = (attempt >= 2 and record.get("step") is None) or attempt >= 3
        if not excused and not barren:
            self.fail(f"attempt {attempt} is charged without a failure: {why}")
        if attempt in self.stopped_first and self.world.clean and not self.world.loss and not self.kills:
            self.fail(f"attempt {attempt} was stopped first, and is charged: {why}")

    def _haunted(self) -> bool:
        """Return whether an agent holds a node rank whose pod was replaced: then two tell of the same attempts."""
        boss = self.world.slots[0]
        peers = boss.coordinator._roster.peers.values() if boss and boss.coordinator else ()
        return any(peer.inc == ghost.inc for peer in peers for ghost in self.world.ghosts)

    def _remembered(self, attempt: int, kind: str, holders: list[Agent]) -> bool:
        """Return whether anybody that can be reached, or a file of such, still knows of a record."""
        files = [self.world.files[agent.node] for agent in self.world.slots if agent and self._reached(agent)]
        documents = [*files, self.world.volume]
        kept = [document["records"].get(str(attempt), {}) for document in documents if document is not None]
        return self._anybody(holders) or any(record.get("kind") == kind for record in kept)

    def _anybody(self, holders: list[Agent]) -> bool:
        """Return whether one of them is still there; a ghost's pod is gone for good."""
        return any(
            holder.alive and holder in self.world.slots and self._reached(holder) for holder in holders
        )

    def _reached(self, agent: Agent) -> bool:
        return agent.inc not in self.world.blocked

    def _end_remembered(self) -> bool:
        documents = [*self.world.files, self.world.volume]
        return self._anybody(self.end_holders) or any(
            document is not None and document["end"] for document in documents
        )

    def birth(self) -> None:
        """Forget what nobody can know any more."""
        here = [agent for agent in self.world.slots if agent and agent.alive]
        memories = [
            machine
            for agent in here
            for machine in (agent.member, agent.coordinator)
            if machine and machine.ledger.attempt >= 0
        ]
        if not memories and not any(self.world.files) and not self.world.volume:
            self.forgotten |= {agent.inc for agent in self.world.agents}
            self.seen.clear()
            self.stopped_first.clear()
            self.end = None

    def told(self, agent: Agent, action: e.Told) -> None:
        if agent in self.world.slots and action.attempt not in agent.member.ledger.records:
            self.fail(f"{agent.inc} is told of attempt {action.attempt}, and its ledger does not know it")

    # --- exits

    def exit(self, agent: Agent, action: e.Exit) -> None:
        if agent.workers and agent.workers.alive:
            self.fail(f"{agent.inc} exits while its workers live")
        if agent not in self.world.slots:
            return
        if action.code == 0 and not self.finished:
            self.fail(f"{agent.inc} exits with 0, and nobody has finished")
        reason = str(action.word.get("reason"))
        if action.code not in self._allowed(agent, reason):
            self.fail(f"{agent.inc} exits with {action.code} ({reason}), the end is {self.end}")
        if self.end == 0 and action.code == 1 and self.world.volume and self.world.volume["end"]:
            self.fail(f"{agent.inc} exits with 1 after a success that stands on the volume")

    def _allowed(self, agent: Agent, reason: str) -> set[int]:
        """Return the exit codes that fit what happened."""
        allowed = set() if self.end is None else {self.end}
        # Who comes when others have left for good waits in vain: a new pod without memory after a success, too.
        if reason == "StartDeadline" and (self.end is not None or self.gone_for_good or self.world.now > 400):
            allowed.add(1)
        # Or with the agent of a node 0 that was replaced, until its pod is removed.
        if reason == "StartDeadline" and any(ghost.node == 0 for ghost in self.world.ghosts):
            allowed.add(1)
        asked = agent.asked or any(each.asked for each in self.world.agents)
        if asked or (self.end is None and not self.world.clean):
            allowed.add(143)
        return allowed
