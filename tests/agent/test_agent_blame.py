"""Who failed first, in real process groups: the first to report it is a victim."""

import pytest

from tests.agent.harness import Job

pytestmark = pytest.mark.gang

TRAINS = """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    for step in range(1, 10_000):
        {fault}
        dist.all_reduce(torch.ones(1))
"""


def test_the_raiser_is_named_and_not_its_victim_when_a_rank_raises(job: Job) -> None:
    fault = "if RANK == 1 and step == 20: raise ValueError('bad sample')"
    ended = job.script(TRAINS.format(fault=fault)).run()
    assert ended.code == 1
    assert ended.word["rank"] == 1
    assert "ValueError: bad sample" in ended.word["message"]
    assert "rank 0 failed only because of that" in ended.word["message"]


def test_the_rank_that_left_is_named_when_it_left_with_0_and_others_trained_on(job: Job) -> None:
    ended = job.script(TRAINS.format(fault="if RANK == 1 and step == 20: os._exit(0)")).run()
    assert ended.code == 1
    assert (ended.word["reason"], ended.word["rank"]) == ("LeftEarly", 1)
