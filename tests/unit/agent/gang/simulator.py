"""Drives the real machines of the gang through seeded faults, and checks what must always hold.

python -m tests.unit.agent.gang.simulator --runs 100000 --seed 0
python -m tests.unit.agent.gang.simulator --seed 4711 --trace
"""

import argparse
import random
import sys
import time
import traceback

from tests.unit.agent.gang.faults import Faults
from tests.unit.agent.gang.world import World

from ddpk8s_agent.gang.deciding import Decider

LAST_FAULT = 60.0
BOUND = 900.0
_RATES = (0.0, 0.0, 0.0, 0.002, 0.01)


def simulate(seed: int, *, trace: bool = False) -> World:
    """Run one cluster to its end; `recorder.problems` is empty if all went well."""
    world = make(seed, trace=trace)
    world.at(LAST_FAULT, calm, world)
    try:
        while world.now < LAST_FAULT + BOUND and (world.now < LAST_FAULT or world.agents):
            world.run(world.now + 10.0)
            world.now = max(world.now, world.heap[0][0] if world.heap else 1e9)
            if world.recorder.problems:
                return world
    except Exception:
        world.recorder.fail(traceback.format_exc())
        return world
    for agent in world.agents:
        world.recorder.fail(
            f"{agent.inc} is stuck: {agent.member.state}, {agent.coordinator and agent.coordinator.phase}"
        )
    return world


def make(seed: int, *, trace: bool = False) -> World:
    shape = random.Random(f"shape {seed}")
    n = shape.choice((1, 2, 2, 3, 3, 4, 5))
    decider = Decider(shape.choice((0, 1, 3, 3)), shape.random() < 0.8, shape.random() < 0.8, n, 2)
    world = World(seed, n, shared=shape.random() < 0.5, decider=decider, trace=trace)
    bad = shape.choice((0.0, 0.3, 1.0))
    world.fates = {
        "success": 1.0,
        **{
            fate: bad * shape.random()
            for fate in ("own", "killed", "hang", "early", "died", "port", "exit hangs")
        },
        "mistake": 0.1 * bad,
        "unready": shape.choice((0.0, 0.0, 0.1)),
        "unkillable": shape.choice((0.0, 0.0, 0.3)),
    }
    world.loss, world.double = shape.choice(_RATES), shape.choice(_RATES)
    world.commits_late = shape.choice((0.0, 0.0, 0.3))
    world.stale_names = shape.random() < 0.3
    for node in range(n):
        world.at(shape.random() * shape.choice((1, 10)), lambda node=node: world.birth(node, keep_file=True))
    Faults(world, LAST_FAULT)
    return world


def calm(world: World) -> None:
    """No faults from now on."""
    world.healthy = True
    world.loss = world.double = world.commits_late = 0.0
    world.fates["unready"] = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    began, failed, starts = time.monotonic(), [], 0
    for seed in range(options.seed, options.seed + options.runs):
        world = simulate(seed, trace=options.trace)
        starts += world.recorder.starts
        if world.trace is not None:
            print("\n".join(world.trace))
        if world.recorder.problems:
            failed.append(seed)
            print(f"seed {seed} ({world.n} nodes): {world.recorder.problems[0]}", flush=True)
    passed, seconds = options.runs - len(failed), time.monotonic() - began
    print(f"{passed} of {options.runs} passed, {starts} starts, {seconds:.0f} s; failed: {failed[:50]}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
