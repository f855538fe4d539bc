"""Throwaway forward and backward passes before the first step.

DDP sorts its gradient buckets anew after its first backward, which on three or more ranks changes the order in which
gloo adds. So every start, fresh or resumed, gets past that before the first real step; parameters, buffers and random
numbers are then as they were, and a resumed run repeats the uninterrupted one bit by bit.
"""

import torch
from torch import nn
from torch.nn import functional

from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.distributed import Gang
from ddpk8s_trainer.seeding import random_state, restore_random_state
from ddpk8s_trainer.strategy import Strategy

Batch = dict[str, torch.Tensor]


def find_unused_parameters(module: nn.Module, batch: Batch) -> tuple[str, ...]:
    """Return the names of trainable parameters that a forward pass does not use; DDP must know of them."""
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    torch.autograd.backward(functional.cross_entropy(module(**inputs).logits.float(), batch["labels"]))
    unused = tuple(name for name, p in module.named_parameters() if p.requires_grad and p.grad is None)
    module.zero_grad(set_to_none=True)
    return unused


def warm_up(strategy: Strategy, batch: Batch, gang: Gang, passes: int = 2) -> None:
    """Run `passes` forward and backward passes and leave no trace of them. Collective."""
    randomness = random_state(gang.device)
    buffers = {name: buffer.clone() for name, buffer in strategy.module.named_buffers()}
    labels = batch["labels"]
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    for _ in range(passes):
        with strategy.micro_step(last=True):
            strategy.backward(functional.cross_entropy(strategy.forward(inputs), labels))
        strategy.discard()
        beat()
    for name, buffer in strategy.module.named_buffers():
        buffer.copy_(buffers[name])
    restore_random_state(randomness, gang.device)
