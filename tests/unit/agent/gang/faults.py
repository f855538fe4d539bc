"""What goes wrong in a simulated cluster, drawn from a seed."""

from typing import TYPE_CHECKING

from ddpk8s_agent.gang import events as e

if TYPE_CHECKING:
    from tests.unit.agent.gang.wires import Agent
    from tests.unit.agent.gang.world import World

STEPS = ("Send", "Arm", "Start", "Drain", "Told", "Remember", "Commit", "Hangup", "Dial")
MESSAGES = (
    "HELLO",
    "WELCOME",
    "PREPARE",
    "READY",
    "START",
    "SUSPECT",
    "END",
    "DONE",
    "VERDICT",
    "ACK",
    "STOPPING",
)
KINDS = (
    "kill",
    "kill at",
    "kill at",
    "break",
    "hole",
    "hole",
    "ghost",
    "ghost and kill",
    "stop",
    "stop",
    "stop all",
)


class Faults:
    """Draws faults, and replaces what they end."""

    def __init__(self, world: "World", last: float, *, draw: bool = True) -> None:
        self.world, self.last = world, last
        self.armed: list[tuple[int, str, int]] = []
        self.deleted = False
        world.watch, world.left = self._watch, self._left
        if draw:
            self._draw()

    def _draw(self) -> None:
        world, rng = self.world, self.world.rng
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 6))):
            world.at(rng.random() * self.last, getattr(self, "_" + rng.choice(KINDS).replace(" ", "_")))
        for _ in range(rng.choice((0, 0, 1, 2))):
            self._kill_at()

    def _some(self) -> "Agent | None":
        rng = self.world.rng
        node = 0 if rng.random() < 0.3 else rng.randrange(self.world.n)
        agent = self.world.slots[node]
        return agent if agent and agent.alive else None

    def _kill(self) -> None:
        if agent := self._some():
            self.kill(agent)

    def kill(self, agent: "Agent") -> None:
        world = self.world
        kills = world.recorder.kills
        kills[agent.node] = kills.get(agent.node, 0) + 1
        world.death(agent, "killed")
        keep = world.rng.random() < 0.4
        world.at(0.2 + world.rng.random() * world.rng.choice((2, 20)), self._replace, agent, keep)

    def _replace(self, agent: "Agent", keep: bool) -> None:
        world = self.world
        if self.deleted or (agent not in world.slots and agent not in world.ghosts):
            return
        if world.slots[agent.node] is agent:
            end = world.volume and world.shared and world.volume["end"]
            if end and end["code"] == 0 and (agent.node or world.rng.random() < 0.5):
                return  # the marker on the volume: it leaves with 0 at once
            world.birth(agent.node, keep_file=keep)

    def _kill_at(self) -> None:
        """Kill an agent right after it did something for the k-th time from now."""
        rng = self.world.rng
        what = rng.choice(MESSAGES) if rng.random() < 0.7 else rng.choice(STEPS)
        node = 0 if rng.random() < 0.6 else rng.randrange(self.world.n)
        self.armed.append((node, what, rng.choice((1, 1, 1, 2, 3))))

    def _watch(self, agent: "Agent", action: e.Action) -> None:
        if not self.armed or agent not in self.world.slots or self.world.now > self.last:
            return
        name = action.message["type"] if isinstance(action, e.Send) else type(action).__name__
        for index, (node, what, left) in enumerate(self.armed):
            if node == agent.node and what == name:
                if left > 1:
                    self.armed[index] = (node, what, left - 1)
                else:
                    del self.armed[index]
                    if agent.alive:
                        self.kill(agent)
                return

    def _break(self) -> None:
        boss = self.world.slots[0]
        if boss and boss.alive and boss.wires:
            self.world.clean = False
            self.world.cut(self.world.rng.choice(list(boss.wires.values())))

    def _hole(self) -> None:
        world = self.world
        if agent := self._some():
            world.block(agent, set(world.rng.choice((("in", "out"), ("in", "out"), ("in",), ("out",)))))
            world.at(1 + world.rng.random() * world.rng.choice((6, 40)), world.heal, agent)

    def _ghost(self) -> None:
        """A node is cut off and replaced, while its agent lives on. With one node nobody could notice that."""
        world, rng = self.world, self.world.rng
        agent = self._some()
        if world.n == 1 or agent is None:
            return
        if rng.random() < 0.5:
            world.block(agent, {"in", "out"} if rng.random() < 0.7 else {"out"})
        else:  # the worst that can happen: nobody hears it, and it hears the others almost until they give it up
            world.block(agent, {"out"})
            world.at(4 + rng.random(), self._deafen, agent)
        world.at(rng.choice((2 + 20 * rng.random(), 5 + 2 * rng.random())), self.haunt, agent)
        world.at(5 + rng.random() * 60, world.heal, agent)

    def _deafen(self, agent: "Agent") -> None:
        if agent.inc in self.world.blocked:
            self.world.block(agent, {"in"})

    def _ghost_and_kill(self) -> None:
        """And while nobody knows of it yet, the coordinator is killed, too."""
        self._ghost()
        self.world.at(self.world.rng.random() * 8, self._kill_first)

    def _kill_first(self) -> None:
        boss = self.world.slots[0]
        if boss and boss.alive:
            self.kill(boss)

    def haunt(self, agent: "Agent") -> None:
        world = self.world
        if world.slots[agent.node] is agent and agent.alive and not self.deleted:
            world.ghosts.append(agent)
            if agent.workers and agent.workers.leaving:  # no time is long enough for what cannot be killed
                agent.workers.ended()
            world.birth(agent.node, keep_file=False)
            world.at(20 + world.rng.random() * 40, world.death, agent, "its pod is removed")

    def _stop(self) -> None:
        if agent := self._some():
            self._ask(agent)

    def _ask(self, agent: "Agent") -> None:
        if agent.alive and not agent.asked:
            agent.asked = True
            self.world.note(lambda: f"{agent.inc} gets SIGTERM")
            self.world.post(agent, agent.member, e.StopAsked())
            # Whoever does not leave in time is killed, as Kubernetes does.
            self.world.at(20.0, self._overdue, agent)

    def _overdue(self, agent: "Agent") -> None:
        if agent.alive:
            self.world.recorder.kills[agent.node] = self.world.recorder.kills.get(agent.node, 0) + 1
            self.world.death(agent, "its time to stop is over")
            if not self.deleted:
                self._replace(agent, False)

    def _stop_all(self) -> None:
        if self.world.rng.random() < 0.5:
            self.delete()

    def delete(self) -> None:
        """The job is deleted, or has failed: every pod is asked to stop, none is replaced."""
        self.deleted = self.world.recorder.gone_for_good = True
        for agent in self.world.slots:
            if agent is not None:
                self.world.at(self.world.rng.random() * 2, self._ask, agent)

    def _left(self, agent: "Agent", code: int) -> None:
        world = self.world
        if agent not in world.slots:
            return
        if code == 143 and not self.deleted:
            world.at(0.5 + world.rng.random() * 10, self._replace, agent, False)
            return
        world.recorder.gone_for_good = True
        if code in (1, 78) and not self.deleted and world.rng.random() < 0.5:
            world.at(3.0, self.delete)
