"""AdamW over two groups of parameters, and the learning rate of a step."""

import math

import torch
from torch import nn

from ddpk8s.spec.training import Optimizer, Schedule


def make_optimizer(model: nn.Module, section: Optimizer, device: torch.device) -> torch.optim.AdamW:
    """Return AdamW over the trainable parameters; biases and norms (fewer than two axes) are not decayed."""
    trainable = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": section.weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]
    fused = section.fused if section.fused is not None else device.type in ("cuda", "cpu")
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=section.learning_rate,
        betas=(section.beta1, section.beta2),
        eps=section.epsilon,
        fused=fused,
    )


def warmup_steps(schedule: Schedule, total: int) -> int:
    """Return the number of warm-up steps out of `total`."""
    if schedule.warmup_steps is not None:
        return schedule.warmup_steps
    return math.ceil((schedule.warmup_ratio or 0.0) * total)


def learning_rate_factor(schedule: Schedule, step: int, total: int) -> float:
    """Return the share of the peak learning rate that optimizer step `step` uses.

    The first step is 1 and uses 1/warmup, not 0, so that no step is lost. A function of the step alone: nothing to
    save, the same for any number of processes.
    """
    warmup = warmup_steps(schedule, total)
    if step <= warmup:
        return step / warmup
    if schedule.type == "constant":
        return 1.0
    start = total - math.ceil(schedule.decay_ratio * total) if schedule.type == "wsd" else 0
    start = max(start, warmup)
    done = min(max((step - 1 - start) / max(total - start, 1), 0.0), 1.0)
    share = 0.5 * (1 + math.cos(math.pi * done)) if schedule.type == "cosine" else 1.0 - done
    return schedule.min_ratio + (1 - schedule.min_ratio) * share
