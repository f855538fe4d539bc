"""The real machines of the gang, through thousands of seeded faults; `simulator` runs as many as wanted."""

from collections import Counter

import pytest
from tests.unit.agent.gang.simulator import simulate

RUNS = 2000
BLOCKS = 8


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_gang_comes_to_a_right_end_whatever_happens(block: int) -> None:
    size = RUNS // BLOCKS
    problems = {}
    for seed in range(block * size, (block + 1) * size):
        world = simulate(seed)
        if world.recorder.problems:
            problems[seed] = world.recorder.problems[0]
    assert not problems, "python -m tests.unit.agent.gang.simulator --trace --seed <one of them>"


def test_the_faults_bring_about_everything_that_can_happen() -> None:
    kinds: Counter[str] = Counter()
    ends: Counter[int | None] = Counter()
    for seed in range(100_000, 100_150):
        world = simulate(seed)
        kinds.update(kind for kind, _ in world.recorder.seen.values())
        ends[world.recorder.end] += 1
    assert set(kinds) == {"charged", "free", "stopped", "trained"}
    assert {0, 1, 78} <= set(ends)


def test_a_seed_replays_exactly() -> None:
    first, second = simulate(17, trace=True).trace, simulate(17, trace=True).trace
    assert first
    assert first == second
