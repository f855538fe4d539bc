"""The plan: which samples make up each optimizer step, and how they are dealt out to the ranks.

A *global batch* is the samples of one optimizer step. It follows from (seed, epoch, globalBatch) alone, never
from the number of processes, so a training continues on other hardware with the very same steps. Each sample
is in exactly one global batch of an epoch. A global batch is cut into micro-batches; every rank gets the same
number of them, empty ones (weight 0) where samples run out, and never a sample twice.
"""

from itertools import pairwise

import numpy as np
import xxhash
from numpy.typing import NDArray

from ddpk8s.spec.training import Batch
from ddpk8s_trainer.data.partition import cheapest_cut, cut, deal, fewest_groups
from ddpk8s_trainer.errors import ConfigurationMistake, DataMistake

Ids = NDArray[np.int64]

PLAN_VERSION = 1  # raise it when the same inputs give other global batches
WINDOW_BATCHES = 50  # samples of so many global batches are sorted by length together


class Plan:
    """Global batches of every epoch, and their micro-batches."""

    def __init__(
        self, lengths: NDArray[np.int32], batch: Batch, max_length: int, seed: int, world_size: int
    ) -> None:
        """Make the plan.

        Args:
            lengths: Tokens of each sample, special tokens included, ``[samples]``.
            batch: The section `spec.training.batch`.
            max_length: What samples are padded to with ``padTo: maxLength``.
            seed: Seed of the order.
            world_size: Number of processes.

        Raises:
            DataMistake: There is no sample.
            ConfigurationMistake: In mode `fixed`, accumulation is given and does not make the global batch.
        """
        if not len(lengths):
            raise DataMistake("no sample to train on")
        self.lengths = lengths
        self.batch = batch
        self.max_length = max_length
        self.seed = seed
        self.world_size = world_size
        self._micro_batch = _fixed_micro_batch(batch, world_size)
        # Of padded length, not real length: with padTo maxLength all samples cost the same.
        same = np.full(len(lengths), max_length, np.int64)
        self._padded = same if batch.pad_to == "maxLength" else lengths.astype(np.int64)
        self._order: tuple[int, Ids] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps of one pass over the data."""
        return -(-len(self.lengths) // self.batch.global_batch)

    @property
    def fingerprint(self) -> str:
        """Hash of all that determines the global batches. The number of processes does not."""
        grouped = self.batch.mode == "tokenBudget" and self.batch.group_by_length
        key = (PLAN_VERSION, len(self.lengths), self.seed, self.batch.global_batch, self.batch.mode, grouped)
        digest = xxhash.xxh3_128(repr(key).encode())
        digest.update(np.ascontiguousarray(self._padded).data)
        return digest.hexdigest()

    def locate(self, step: int) -> tuple[int, int]:
        """Return (epoch, index in the epoch) of the optimizer step that comes after `step` finished ones."""
        return divmod(step, self.steps_per_epoch)

    def global_batch(self, epoch: int, index: int) -> Ids:
        """Return the ids of one optimizer step; the last of an epoch may be short.

        Raises:
            IndexError: `index` is not in ``[0, steps_per_epoch)``.
        """
        if not 0 <= index < self.steps_per_epoch:
            raise IndexError(f"global batch {index} of {self.steps_per_epoch}")
        size = self.batch.global_batch
        return self._epoch_order(epoch)[index * size : (index + 1) * size]

    def micro_batches(self, ids: Ids) -> list[list[Ids]]:
        """Cut a global batch into ``[micro-step][rank]`` arrays of ids; ranks have equally many."""
        if self.batch.mode == "fixed":
            return self._fixed_micro_batches(ids)
        by_length = ids[np.argsort(self._padded[ids], kind="stable")]
        lengths = self._padded[by_length].tolist()
        found = cheapest_cut(lengths, self.world_size, self.batch.tokens_per_device)
        return deal(found, by_length, self.world_size)

    def rank_batches(self, epoch: int, index: int, rank: int) -> list[Ids]:
        """Return the micro-batches of one rank in one optimizer step."""
        return [step[rank] for step in self.micro_batches(self.global_batch(epoch, index))]

    def _fixed_micro_batches(self, ids: Ids) -> list[list[Ids]]:
        """Deal ids out in turn, as DistributedSampler does, and cut each rank's share into equal counts."""
        size = self._micro_batch
        shares = [ids[rank :: self.world_size] for rank in range(self.world_size)]
        return [[share[first : first + size] for share in shares] for first in range(0, len(shares[0]), size)]

    def _epoch_order(self, epoch: int) -> Ids:
        """Return all ids in the order of `epoch`, ``[samples]``; the last one asked for is remembered."""
        remembered = self._order
        if remembered is None or remembered[0] != epoch:
            remembered = (epoch, self._make_order(epoch))
            self._order = remembered
        return remembered[1]

    def _make_order(self, epoch: int) -> Ids:
        if self.batch.mode == "fixed":
            return _distributed_sampler_order(len(self.lengths), self.seed, epoch)
        bits = np.random.PCG64(np.random.SeedSequence([self.seed, epoch]))
        order = _permutation(bits, len(self.lengths))
        if not self.batch.group_by_length:
            return order
        return _group_by_length(order, self._padded, self.batch.global_batch, bits)


def evaluation_batches(
    lengths: NDArray[np.int32], tokens_per_device: int, rank: int, world_size: int
) -> list[Ids]:
    """Return the evaluation batches of one rank, longest samples first.

    Every sample is in one batch of one rank. Ranks get batches of like cost and as many of them, give or take
    one; no batch is empty.

    Args:
        lengths: Tokens of each sample, ``[samples]``.
        tokens_per_device: Most padded tokens of a batch; a longer sample stands alone.
        rank: This process.
        world_size: Number of processes.
    """
    if not len(lengths):
        return []
    by_length = np.argsort(lengths, kind="stable").astype(np.int64)
    ascending = lengths[by_length].tolist()
    needed = fewest_groups(ascending, tokens_per_device)
    found = cut(ascending, -(-needed // world_size) * world_size, tokens_per_device)
    mine = [step[rank] for step in deal(found, by_length, world_size)]
    return sorted((ids for ids in mine if len(ids)), key=lambda ids: -int(lengths[ids[-1]]))


def _fixed_micro_batch(batch: Batch, world_size: int) -> int:
    """Return the samples of one forward pass in mode `fixed`."""
    share = -(-batch.global_batch // world_size)
    accumulation = batch.gradient_accumulation_steps
    if batch.mode != "fixed" or (batch.micro_batch is None and accumulation is None):
        return share
    if accumulation is None:
        return batch.micro_batch or share
    size = batch.micro_batch or batch.global_batch // (accumulation * world_size)
    if size * accumulation * world_size != batch.global_batch:
        made_of = (
            f"microBatch {batch.micro_batch} x " if batch.micro_batch else "a whole number of samples x "
        )
        raise ConfigurationMistake(
            f"spec.training.batch: globalBatch is {batch.global_batch}, but {made_of}"
            f"gradientAccumulationSteps {accumulation} x {world_size} processes do not make it",
            hint="leave gradientAccumulationSteps out: it follows from globalBatch and microBatch",
        )
    return size


def _permutation(bits: np.random.PCG64, count: int) -> Ids:
    """Return a random order of `count` ids.

    Sorted raw bits rather than `Generator.permutation`: numpy promises the raw stream to stay the same over
    its versions, and a resumed training must find its order again.
    """
    return np.argsort(bits.random_raw(count), kind="stable").astype(np.int64)


def _distributed_sampler_order(count: int, seed: int, epoch: int) -> Ids:
    """Return the order of ``DistributedSampler(shuffle=True, seed=seed)`` after ``set_epoch(epoch)``."""
    import torch  # only this mode needs it, and the plan is useful without

    generator = torch.Generator()
    generator.manual_seed(seed + epoch)
    order: Ids = torch.randperm(count, generator=generator).numpy()
    return order


def _group_by_length(order: Ids, lengths: NDArray[np.int64], size: int, bits: np.random.PCG64) -> Ids:
    """Rearrange a random order so that each global batch of `size` holds samples of like length.

    Within windows of about `WINDOW_BATCHES` batches samples are sorted by length (ties stay in random order)
    and cut; then the batches of the whole epoch are shuffled. A short batch stays the last, of a random
    length like the others: were it always the longest samples, these would always have the greatest weight.
    """
    full, rest = divmod(len(order), size)
    windows = max(1, round(full / WINDOW_BATCHES))
    batches: list[Ids] = []
    short = order[:0]
    edges = [full * window // windows * size for window in range(windows)] + [len(order)]
    for start, end in pairwise(edges):
        window = order[start:end]
        window = window[np.argsort(lengths[window], kind="stable")]
        if end == len(order) and rest:
            at = int(bits.random_raw() % (len(window) // size + 1)) * size
            short, window = window[at : at + rest], np.delete(window, slice(at, at + rest))
        batches += np.split(window, range(size, len(window), size)) if len(window) else []
    shuffled = [batches[i] for i in _permutation(bits, len(batches))]
    return np.concatenate([*shuffled, short])
