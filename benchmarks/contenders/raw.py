"""A hand-written DDP loop on exactly our batches: no metrics, no flags, no checkpoints, nothing but the training."""

from contextlib import nullcontext

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from transformers import get_linear_schedule_with_warmup

from benchmarks.contenders.minimal import PadToLongest
from benchmarks.environment import PROCESSES
from benchmarks.sampling import BLOCKS, SampledPlan
from benchmarks.workload import Work


class RawLoop:
    """Repeats the host's blocks in the host's process group."""

    def __init__(self, work: Work) -> None:
        """Make model and optimizer; samples wait in memory as tensors."""
        training = work.training
        self._work = work
        self._model = DistributedDataParallel(
            work.new_model(), gradient_as_bucket_view=True, forward_sync_buffers=False
        )
        decayed = [p for p in self._model.parameters() if p.ndim >= 2]
        others = [p for p in self._model.parameters() if p.ndim < 2]
        groups = [
            {"params": decayed, "weight_decay": training.optimizer.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        self._parameters = [*decayed, *others]
        self._optimizer = torch.optim.AdamW(groups, lr=training.optimizer.learning_rate, fused=True)
        self._scheduler = get_linear_schedule_with_warmup(
            self._optimizer, work.warmup_steps, work.total_steps
        )
        self._collate = PadToLongest(work.load_tokenizer().pad_token_id)
        self._samples = work.samples()
        self._blocks = _plan_blocks(work)

    def block(self, number: int) -> None:
        """Train on the batches of block `number`."""
        training = self._work.training
        weight = PROCESSES / training.batch.global_batch
        for micro_batches in self._blocks[number % BLOCKS]:
            for ids in micro_batches:
                batch = self._collate([self._samples[i] for i in ids])
                labels = batch.pop("labels")
                with nullcontext() if ids is micro_batches[-1] else self._model.no_sync():
                    logits = self._model(**batch).logits
                    loss = functional.cross_entropy(logits, labels, reduction="sum") * weight
                    torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(self._parameters, training.optimizer.max_grad_norm or 1.0)
            self._optimizer.step()
            self._scheduler.step()
            self._optimizer.zero_grad()


def _plan_blocks(work: Work) -> list[list[list[npt.NDArray[np.int64]]]]:
    """Return the micro-batches of this rank, ``[block][step][micro-step]``."""
    plan, rank = SampledPlan(work), dist.get_rank()
    return [
        [
            plan.rank_batches(*plan.locate(step), rank)
            for step in range(number * work.block_steps, (number + 1) * work.block_steps)
        ]
        for number in range(BLOCKS)
    ]
