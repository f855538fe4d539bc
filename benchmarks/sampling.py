"""Blocks that stand for a whole epoch: every tenth of its steps, picked by what the steps cost.

Batches of like length differ in cost by a factor of fifty, so a block of consecutive steps would say little. Here the
steps of a real epoch (of each contender's own sampler, over all samples) are ranked by cost; of each ten neighbors in
that ranking every block gets one. All blocks so hold the same mix of short and long steps as the epoch.
"""

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler
from transformers.trainer_pt_utils import LengthGroupedSampler

from benchmarks.environment import PROCESSES
from benchmarks.workload import Work
from ddpk8s_trainer.data.plan import Plan

PARTS = 10
BLOCKS = 60  # more than are ever run
Ids = NDArray[np.int64]


def pick_steps(costs: Sequence[float], seed: int) -> list[list[int]]:
    """Return `PARTS` lists of as many steps each, in the order of the epoch; the cheapest rest is left out."""
    ranking = np.argsort(np.asarray(costs), kind="stable").tolist()[len(costs) % PARTS :]
    order = random.Random(seed)
    parts: list[list[int]] = [[] for _ in range(PARTS)]
    for first in range(0, len(ranking), PARTS):
        neighbors = ranking[first : first + PARTS]
        order.shuffle(neighbors)
        for part, step in zip(parts, neighbors, strict=True):
            part.append(step)
    return [sorted(part) for part in parts]


def _blocks(epoch_costs: Callable[[int], Sequence[float]]) -> list[tuple[int, list[int]]]:
    """Return (epoch, steps) of every block."""
    blocks = []
    for epoch in range(BLOCKS // PARTS):
        blocks += [(epoch, part) for part in pick_steps(epoch_costs(epoch), epoch)]
    return blocks


class SampledPlan(Plan):
    """Our plan, of which only the picked steps are trained on."""

    def __init__(self, work: Work) -> None:
        """Pick the steps; whole ones only."""
        training = work.training
        super().__init__(
            work.dataset.lengths, training.batch, training.data.max_length, training.seed, PROCESSES
        )
        whole = len(self.lengths) // training.batch.global_batch
        blocks = _blocks(
            lambda epoch: [
                float(self.lengths[self.global_batch(epoch, index)].sum()) for index in range(whole)
            ]
        )
        self._steps = [(epoch, index) for epoch, part in blocks for index in part]

    def locate(self, step: int) -> tuple[int, int]:
        """Return (epoch, index in the epoch) of the picked step after `step` finished ones."""
        return self._steps[step % len(self._steps)]


class SampledByLength(Sampler[int]):
    """Hugging Face's sampler by length, of which only the picked steps are trained on."""

    def __init__(self, work: Work, group: int) -> None:
        """Pick the steps.

        Args:
            work: The training.
            group: `batch_size` of `LengthGroupedSampler`, which groups within 50 times as many samples.
        """
        lengths = work.dataset.lengths
        size = work.per_device_batch * PROCESSES
        self._order: list[int] = []
        orders: dict[int, Ids] = {}

        def costs(epoch: int) -> list[float]:
            generator = torch.Generator().manual_seed(work.training.seed + epoch)
            ids = list(LengthGroupedSampler(group, lengths=lengths.tolist(), generator=generator))
            orders[epoch] = np.array(ids[: len(ids) // size * size]).reshape(-1, size)
            return [float(lengths[step].sum()) for step in orders[epoch]]

        for epoch, part in _blocks(costs):
            self._order += orders[epoch][part].reshape(-1).tolist()

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._order)

    def __iter__(self) -> Iterator[int]:
        """Yield ids; each rank takes every other batch of them."""
        return iter(self._order)


def sampler_by_length(work: Work, group: int) -> Sampler[int]:
    """Return Hugging Face's sampler by length; measured in blocks, that of picked steps."""
    if work.block_steps:
        return SampledByLength(work, group)
    lengths = work.dataset.lengths.tolist()
    generator = torch.Generator().manual_seed(work.training.seed)
    sampler: Sampler[int] = LengthGroupedSampler(group, lengths=lengths, generator=generator)
    return sampler
