"""The plan against torch's own sampler, and its figures on known data."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from torch.utils.data import DistributedSampler

from ddpk8s.spec.training import Batch
from ddpk8s_trainer.data.partition import Cut, cut, deal
from ddpk8s_trainer.data.plan import Plan, evaluation_batches
from ddpk8s_trainer.errors import ConfigurationMistake, DataMistake


def ragged(count, seed=0):
    """Lengths as real text has them: many short, few long."""
    return np.clip(np.random.default_rng(seed).lognormal(3.5, 0.8, count), 4, 256).astype(np.int32)


def padded(plan, step):
    return [len(ids) * int(plan.lengths[ids].max()) if len(ids) else 0 for ids in step]


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("epoch", [0, 3])
def test_fixed_mode_is_the_distributed_sampler_when_it_repeats_nothing(world, epoch):
    count, each = 24 * world, 5
    plan = Plan(ragged(count), Batch(mode="fixed", global_batch=each * world), 256, 11, world)
    for rank in range(world):
        sampler = DistributedSampler(range(count), world, rank, shuffle=True, seed=11)
        sampler.set_epoch(epoch)
        mine = [plan.rank_batches(epoch, index, rank) for index in range(plan.steps_per_epoch)]
        assert np.concatenate([ids for step in mine for ids in step]).tolist() == list(sampler)
        assert [len(step) for step in mine] == [1] * plan.steps_per_epoch


@pytest.mark.parametrize("world", [2, 3, 4])
def test_fixed_mode_leaves_out_the_repeats_of_the_distributed_sampler(world):
    count = 4 * 6 * world + 1
    plan = Plan(ragged(count), Batch(mode="fixed", global_batch=6 * world), 256, 0, world)
    for rank in range(world):
        theirs = list(DistributedSampler(range(count), world, rank, shuffle=True, seed=0))
        steps = [plan.rank_batches(0, index, rank) for index in range(plan.steps_per_epoch)]
        mine = np.concatenate([ids for step in steps for ids in step]).tolist()
        assert mine == (theirs if rank == 0 else theirs[:-1])
        assert [len(ids) for ids in steps[-1]] == [1 if rank == 0 else 0]


@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        ({}, [[4, 3, 3]]),
        ({"micro_batch": 2}, [[2, 2, 2], [2, 1, 1]]),
        ({"micro_batch": 100}, [[4, 3, 3]]),
    ],
)
def test_fixed_mode_gives_empty_or_smaller_micro_batches_when_samples_run_out(settings, counts):
    plan = Plan(ragged(10), Batch(mode="fixed", global_batch=10, **settings), 256, 0, 3)
    assert [[len(ids) for ids in step] for step in plan.micro_batches(plan.global_batch(0, 0))] == counts


def test_gradient_accumulation_steps_decide_the_micro_batch_when_given():
    plan = Plan(ragged(24), Batch(mode="fixed", global_batch=24, gradient_accumulation_steps=3), 256, 0, 2)
    assert [[len(ids) for ids in step] for step in plan.micro_batches(plan.global_batch(0, 0))] == [
        [4, 4]
    ] * 3


def test_accumulation_that_does_not_make_the_global_batch_is_a_mistake():
    batch = Batch(mode="fixed", global_batch=64, micro_batch=8, gradient_accumulation_steps=2)
    with pytest.raises(ConfigurationMistake) as caught:
        Plan(ragged(100), batch, 256, 0, 3)
    assert caught.value.message == (
        "spec.training.batch: globalBatch is 64, but microBatch 8 x gradientAccumulationSteps 2 x 3 processes "
        "do not make it"
    )


def test_no_sample_is_a_mistake():
    with pytest.raises(DataMistake, match="no sample to train on"):
        Plan(np.zeros(0, np.int32), Batch(), 256, 0, 1)


def test_index_outside_the_epoch_is_refused():
    plan = Plan(ragged(10), Batch(global_batch=4), 256, 0, 1)
    with pytest.raises(IndexError, match="global batch 3 of 3"):
        plan.global_batch(0, 3)


def test_grouping_by_length_saves_padding():
    lengths = ragged(6400)
    tokens = {}
    for grouped in (True, False):
        plan = Plan(lengths, Batch(group_by_length=grouped), 256, 1, 2)
        steps = (plan.micro_batches(plan.global_batch(0, index)) for index in range(plan.steps_per_epoch))
        tokens[grouped] = sum(sum(padded(plan, part)) for step in steps for part in step)
    assert tokens[True] < 1.06 * lengths.sum()
    assert tokens[True] < 0.85 * tokens[False]


def test_the_short_batch_is_not_always_the_longest_samples():
    plan = Plan(ragged(64 * 20 + 10), Batch(), 256, 1, 1)
    shorts = [plan.lengths[plan.global_batch(epoch, 20)].mean() for epoch in range(20)]
    assert len(plan.global_batch(0, 20)) == 10
    assert min(shorts) < plan.lengths.mean() / 2
    assert np.median(shorts) < plan.lengths.mean() * 1.5


def test_ranks_have_like_work():
    plan = Plan(ragged(6400), Batch(global_batch=128, tokens_per_device=2048), 256, 1, 4)
    for index in range(plan.steps_per_epoch):
        totals = np.sum([padded(plan, s) for s in plan.micro_batches(plan.global_batch(0, index))], axis=0)
        assert totals.max() < 1.35 * totals.mean()


def test_short_and_long_batches_come_in_mixed_order():
    plan = Plan(ragged(6400), Batch(), 256, 1, 1)
    means = [plan.lengths[plan.global_batch(0, index)].mean() for index in range(plan.steps_per_epoch)]
    rises = sum(one < other for one, other in pairwise(means))
    assert 0.3 < rises / len(means) < 0.7


def test_no_rank_has_always_the_dearer_share():
    steps = deal(Cut([1, 2, 3, 4, 5, 6, 7, 8], list(range(9))), np.arange(8), 2)
    assert [[ids.tolist() for ids in step] for step in steps] == [
        [[7], [6]],
        [[4], [5]],
        [[3], [2]],
        [[0], [1]],
    ]


def test_more_micro_steps_only_when_padding_saved_pays():
    alike = Plan(np.full(64, 30, np.int32), Batch(), 256, 0, 2)
    assert len(alike.micro_batches(alike.global_batch(0, 0))) == 1
    apart = Plan(np.array([10] * 60 + [250] * 4, np.int32), Batch(), 256, 0, 1)
    found = apart.micro_batches(apart.global_batch(0, 0))
    assert sorted(padded(apart, [step[0]])[0] for step in found) == [600, 1000]


@pytest.mark.parametrize(
    ("lengths", "groups", "bounds"),
    [
        ([5, 5, 5, 5], 2, [0, 2, 4]),
        ([1, 1, 1, 1, 4], 2, [0, 4, 5]),
        ([3], 4, [0, 1]),
        ([2, 2, 2, 2, 2, 2], 4, [0, 1, 2, 4, 6]),
    ],
)
def test_cut_makes_the_dearest_group_cheap(lengths, groups, bounds):
    assert cut(lengths, groups, 100).bounds == bounds


def test_cut_is_optimal_against_exhaustive_search():
    for seed in range(30):
        lengths = np.sort(ragged(9, seed)).tolist()
        for groups in (2, 3, 4):
            every = [[0, *inner, 9] for inner in combinations(range(1, 9), groups - 1)]
            costs = [max((e - s) * lengths[e - 1] for s, e in pairwise(b)) for b in every]
            assert max(cut(lengths, groups, 10_000).costs()) == min(costs)


def test_fingerprint_changes_with_all_that_changes_the_batches():
    lengths = ragged(100)
    plans = [
        Plan(lengths, Batch(), 256, 0, 2),
        Plan(lengths, Batch(global_batch=32), 256, 0, 2),
        Plan(lengths, Batch(group_by_length=False), 256, 0, 2),
        Plan(lengths, Batch(mode="fixed"), 256, 0, 2),
        Plan(lengths, Batch(), 256, 1, 2),
        Plan(lengths[:-1], Batch(), 256, 0, 2),
        Plan(lengths[::-1].copy(), Batch(), 256, 0, 2),
    ]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert Plan(lengths, Batch(tokens_per_device=64), 256, 0, 7).fingerprint == plans[0].fingerprint


def test_order_of_an_epoch_stays_what_it_was():
    """A resumed training must find its order again, also after an upgrade."""
    plan = Plan(np.array([9, 5] * 6, np.int32), Batch(global_batch=5), 64, 42, 1)
    assert [plan.global_batch(1, index).tolist() for index in range(3)] == PINNED


def test_evaluation_gives_every_rank_work_when_one_batch_would_do():
    ranks = [evaluation_batches(np.full(10, 20, np.int32), 8192, rank, 4) for rank in range(4)]
    assert sorted(sum(map(len, batches)) for batches in ranks) == [1, 3, 3, 3]


PINNED = [[1, 11, 5, 3, 9], [7, 10, 2, 8, 6], [0, 4]]
