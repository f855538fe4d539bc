"""A dropout that needs a quarter of the random numbers, for CPUs, where drawing them is what dropout costs."""

import torch
from torch import nn

_LEVELS = 1 << 16  # probabilities are rounded to multiples of 1 / 65536


class LeanDropout(nn.Dropout):
    """`nn.Dropout` with four 16-bit numbers from each 64-bit one; values and gradients are scaled as there."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return `input` with values dropped in training, the rest scaled up."""
        cut = round(self.p * _LEVELS)
        if not self.training or not 0 < cut < _LEVELS:
            return super().forward(input)
        words = torch.empty(-(-input.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        numbers = words.view(torch.int16)[: input.numel()].view(input.shape)
        kept = numbers >= cut - _LEVELS // 2
        return input * kept.to(input.dtype).mul_(_LEVELS / (_LEVELS - cut))


def use_lean_dropout(module: nn.Module) -> None:
    """Exchange the dropouts of a model on the CPU; its weights and its exported form know nothing of it."""
    for part in module.modules():
        if type(part) is nn.Dropout and not part.inplace:
            part.__class__ = LeanDropout
