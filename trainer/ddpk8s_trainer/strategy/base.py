"""The protocol between the loop and a strategy."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn


@dataclass(frozen=True)
class StepResult:
    """What an optimizer step did.

    Attributes:
        grad_norm: Norm of the gradient before clipping; infinite where fp16 overflowed.
        skipped: Whether the parameters were left alone because of an overflow.
    """

    grad_norm: float
    skipped: bool


class Strategy(Protocol):
    """Forward, backward and step of one optimizer step; the loop knows nothing else of how processes share it."""

    module: nn.Module
    """The model without wrappers: for evaluation, export and names."""

    def micro_step(self, *, last: bool) -> AbstractContextManager[None]:
        """Return the context of one micro-batch's forward and backward; gradients meet in the `last` one."""

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return logits, float32 [batch, labels]."""

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradient of `loss`, whose mean over ranks is the objective."""

    def step(self, learning_rate: float) -> StepResult:
        """Clip, update the parameters and clear the gradients."""

    def discard(self) -> None:
        """Clear the gradients without an update."""

    def state_bytes(self) -> int:
        """Return the size of a checkpoint in bytes, known before the first step."""

    def tensors(self) -> dict[str, Any]:
        """Return model and optimizer state for a checkpoint: tensors, the same on all ranks or sharded."""

    def restore(self, tensors: dict[str, Any]) -> None:
        """Take back what `tensors` returned."""

    def scalars(self) -> dict[str, Any]:
        """Return the small rest of the state (loss scale), as JSON values."""

    def restore_scalars(self, scalars: dict[str, Any]) -> None:
        """Take back what `scalars` returned."""
