"""Agents that are cut off and replaced, but live on: nothing starts before their processes are gone."""

import pytest
from tests.unit.agent.gang.faults import Faults
from tests.unit.agent.gang.wires import TIMING, Agent
from tests.unit.agent.gang.world import World

from ddpk8s_agent.gang.deciding import Decider


class Scene:
    """Two nodes that train without end, long since."""

    def __init__(self, seed: int) -> None:
        decider = Decider(3, sees_progress=True, sees_start=True, nnodes=2, nproc=2)
        self.world = World(seed, 2, shared=False, decider=decider, trace=False)
        self.world.fates = {"endless": 1.0}
        self.faults = Faults(self.world, 0.0, draw=False)
        for node in (0, 1):
            self.world.birth(node, keep_file=True)
        self.wait(30.0)
        assert self.world.recorder.starts == 2

    def wait(self, seconds: float) -> None:
        until = self.world.now + seconds
        self.world.run(until)
        self.world.now = until

    def cut_off_and_replace(self, agent: Agent) -> None:
        """Nobody hears it, and it hears the others until they give it up; the worst case."""
        self.world.block(agent, {"out"})
        self.wait(TIMING.peer_deadline - 0.1)
        self.world.block(agent, {"in"})
        self.wait(0.8)
        self.faults.haunt(agent)

    def check(self) -> None:
        self.wait(40.0)
        assert self.world.recorder.problems == []
        assert self.world.recorder.starts == 4, "and then it does start again"


@pytest.mark.parametrize("seed", range(20))
def test_a_replaced_member_is_waited_for(seed: int) -> None:
    scene = Scene(seed)
    old = scene.world.slots[1]
    assert old is not None
    scene.cut_off_and_replace(old)
    scene.check()


@pytest.mark.parametrize("seed", range(20))
def test_a_replaced_member_is_waited_for_by_a_new_coordinator_too(seed: int) -> None:
    scene = Scene(seed)
    boss, old = scene.world.slots
    assert boss is not None
    assert old is not None
    scene.world.block(old, {"out"})
    scene.wait(TIMING.peer_deadline - 1.5)
    scene.faults.haunt(old)
    scene.wait(0.7)
    scene.faults.kill(boss)  # before it notices; the next one has only its file
    scene.world.files[0] = boss.member.ledger.to_document()
    scene.world.birth(0, keep_file=True)
    scene.world.block(old, {"in"})
    scene.check()


@pytest.mark.parametrize("seed", range(20))
def test_a_replaced_coordinator_is_waited_for(seed: int) -> None:
    scene = Scene(seed)
    boss = scene.world.slots[0]
    assert boss is not None
    scene.world.block(boss, {"out"})
    scene.wait(TIMING.peer_deadline - 0.1)
    scene.world.block(boss, {"in"})
    scene.wait(0.8)
    scene.faults.haunt(boss)
    scene.check()
