"""Properties of the plan: they hold for any data, batch and number of processes."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpk8s.spec.training import Batch
from ddpk8s_trainer.data.plan import Plan, evaluation_batches

MAX_LENGTH = 128
WORLDS = st.integers(1, 5)
LENGTHS = st.lists(st.integers(1, MAX_LENGTH), min_size=1, max_size=300).map(lambda x: np.array(x, np.int32))
BATCHES = st.builds(
    Batch,
    global_batch=st.integers(1, 70),
    mode=st.sampled_from(["tokenBudget", "fixed"]),
    tokens_per_device=st.integers(16, 2000),
    group_by_length=st.booleans(),
    micro_batch=st.none() | st.integers(1, 20),
    pad_to=st.sampled_from(["longest", "maxLength"]),
)
SEEDS = st.integers(0, 2**32 - 1)
EPOCHS = st.integers(0, 1000)

thorough = settings(deadline=None, max_examples=150, derandomize=True)


def epoch_of(plan, epoch):
    return [plan.global_batch(epoch, index) for index in range(plan.steps_per_epoch)]


@thorough
@given(LENGTHS, BATCHES, SEEDS, EPOCHS, WORLDS)
def test_every_sample_comes_exactly_once_in_an_epoch(lengths, batch, seed, epoch, world):
    plan = Plan(lengths, batch, MAX_LENGTH, seed, world)
    batches = epoch_of(plan, epoch)
    assert all(len(ids) == batch.global_batch for ids in batches[:-1])
    consumed = [
        ids
        for index in range(plan.steps_per_epoch)
        for rank in range(world)
        for ids in plan.rank_batches(epoch, index, rank)
    ]
    assert np.sort(np.concatenate(consumed)).tolist() == list(range(len(lengths)))


@thorough
@given(LENGTHS, BATCHES, SEEDS, EPOCHS, WORLDS, WORLDS)
def test_global_batches_are_the_same_for_any_number_of_processes(lengths, batch, seed, epoch, one, other):
    first, second = (Plan(lengths.copy(), batch, MAX_LENGTH, seed, world) for world in (one, other))
    assert first.fingerprint == second.fingerprint
    for mine, theirs in zip(epoch_of(first, epoch), epoch_of(second, epoch), strict=True):
        assert mine.tolist() == theirs.tolist()


@thorough
@given(LENGTHS, BATCHES, SEEDS, EPOCHS, WORLDS)
def test_a_step_deals_its_global_batch_in_equally_many_micro_batches(lengths, batch, seed, epoch, world):
    plan = Plan(lengths, batch, MAX_LENGTH, seed, world)
    for index in range(plan.steps_per_epoch):
        ids = plan.global_batch(epoch, index)
        steps = plan.micro_batches(ids)
        assert steps
        assert {len(step) for step in steps} == {world}
        dealt = np.concatenate([part for step in steps for part in step])
        assert np.sort(dealt).tolist() == np.sort(ids).tolist()
        assert all(any(len(part) for part in step) for step in steps)
        if len(ids) >= world:
            assert all(len(part) for part in steps[0])


@thorough
@given(LENGTHS, BATCHES, SEEDS, WORLDS)
def test_no_micro_batch_is_larger_than_allowed(lengths, batch, seed, world):
    plan = Plan(lengths, batch, MAX_LENGTH, seed, world)
    for index in range(plan.steps_per_epoch):
        for part in (part for step in plan.micro_batches(plan.global_batch(0, index)) for part in step):
            if batch.mode == "fixed":
                assert len(part) <= (batch.micro_batch or -(-batch.global_batch // world))
            elif len(part) > 1:
                longest = MAX_LENGTH if batch.pad_to == "maxLength" else lengths[part].max()
                assert longest * len(part) <= batch.tokens_per_device


@thorough
@given(LENGTHS, BATCHES, SEEDS, st.permutations(range(4)))
def test_the_order_does_not_depend_on_what_was_asked_before(lengths, batch, seed, epochs):
    asked, fresh = (Plan(lengths, batch, MAX_LENGTH, seed, 2) for _ in range(2))
    orders = {epoch: np.concatenate(epoch_of(asked, epoch)).tolist() for epoch in epochs}
    for epoch in range(4):
        assert np.concatenate(epoch_of(fresh, epoch)).tolist() == orders[epoch]


@thorough
@given(BATCHES, SEEDS, EPOCHS)
def test_epochs_and_seeds_differ(batch, seed, epoch):
    lengths = np.arange(200, dtype=np.int32) % 90 + 1
    orders = [
        tuple(
            np.concatenate(epoch_of(Plan(lengths, batch, MAX_LENGTH, seed + more, 1), epoch + later)).tolist()
        )
        for more, later in ((0, 0), (0, 1), (0, 2))
    ]
    assert len(set(orders)) == 3
    other = Plan(lengths, batch, MAX_LENGTH, (seed + 7919) % 2**32, 1)
    assert tuple(np.concatenate(epoch_of(other, epoch)).tolist()) not in orders


@thorough
@given(LENGTHS, BATCHES, st.integers(0, 10_000))
def test_locating_a_step_inverts_counting_steps(lengths, batch, step):
    plan = Plan(lengths, batch, MAX_LENGTH, 1, 2)
    epoch, index = plan.locate(step)
    assert 0 <= index < plan.steps_per_epoch
    assert epoch * plan.steps_per_epoch + index == step


@thorough
@given(LENGTHS, st.integers(16, 1000), WORLDS)
def test_evaluation_sees_every_sample_once_within_the_budget(lengths, budget, world):
    ranks = [evaluation_batches(lengths, budget, rank, world) for rank in range(world)]
    everything = [ids for batches in ranks for ids in batches]
    assert np.sort(np.concatenate(everything)).tolist() == list(range(len(lengths)))
    assert all(len(ids) == 1 or len(ids) * lengths[ids].max() <= budget for ids in everything)
    assert max(map(len, ranks)) - min(map(len, ranks)) <= 1
    for batches in ranks:
        longest = [lengths[ids].max() for ids in batches]
        assert all(one >= other for one, other in pairwise(longest))
