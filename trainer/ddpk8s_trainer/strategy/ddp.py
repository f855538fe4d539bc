"""DistributedDataParallel with automatic mixed precision."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.nn.parallel import DistributedDataParallel

from ddpk8s.spec.training import Training
from ddpk8s_trainer.distributed import Gang
from ddpk8s_trainer.errors import ConfigurationMistake
from ddpk8s_trainer.optim import make_optimizer
from ddpk8s_trainer.strategy.base import StepResult
from ddpk8s_trainer.strategy.rows import take_embedding

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_FLAT = StateDictOptions(flatten_optimizer_state_dict=True)


class DDPStrategy:
    """Every rank holds the whole model; gradients are averaged in the last micro-batch's backward."""

    def __init__(
        self, module: nn.Module, training: Training, gang: Gang, unused: tuple[str, ...] = ()
    ) -> None:
        self.module = module
        self._device = gang.device
        self._max_grad_norm = training.optimizer.max_grad_norm
        self._autocast_type = _DTYPES.get(training.precision.type)
        self._optimizer = make_optimizer(module, training.optimizer, gang.device)
        self._parameters = [p for p in module.parameters() if p.requires_grad]
        self._scaler = make_scaler(training, gang.device)
        # A compiled backward pass cannot give the rows alone.
        self._rows = None if training.compile else take_embedding(module, gang.world_size)
        compiled = torch.compile(module, dynamic=True) if training.compile else module
        self._wrapped = DistributedDataParallel(
            compiled,
            device_ids=[gang.device.index] if gang.device.type == "cuda" else None,
            forward_sync_buffers=False,  # transformers' buffers are constants
            gradient_as_bucket_view=True,
            find_unused_parameters=bool(unused),
        )

    @contextmanager
    def micro_step(self, *, last: bool) -> Iterator[None]:
        """Return the context of one micro-batch; only the last one exchanges gradients."""
        with nullcontext() if last else self._wrapped.no_sync():
            yield
        if last and self._rows:
            self._rows.exchange()

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return logits, float32 [batch, labels]."""
        with self.autocast():
            logits: torch.Tensor = self._wrapped(**inputs).logits
        return logits.float()

    def autocast(self) -> Any:
        """Return the context in which the model computes, in training as in evaluation."""
        if self._autocast_type is None:
            return nullcontext()
        return torch.autocast(self._device.type, dtype=self._autocast_type)

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradient of `loss`, scaled in fp16."""
        torch.autograd.backward(self._scaler.scale(loss))

    def step(self, learning_rate: float) -> StepResult:
        """Clip, update and clear. A gradient that is not finite leaves the parameters alone, in every precision."""
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._scaler.unscale_(self._optimizer)
        # Gradients are the same on all ranks after their exchange, and so is what each rank decides from the norm.
        total = nn.utils.get_total_norm([p.grad for p in self._parameters if p.grad is not None])
        norm = float(total)
        finite = math.isfinite(norm)
        if finite and self._max_grad_norm and norm > self._max_grad_norm:
            nn.utils.clip_grads_with_norm_(self._parameters, self._max_grad_norm, total)
        if self._scaler.is_enabled():
            self._scaler.step(self._optimizer)
            self._scaler.update()
        elif finite:
            self._optimizer.step()
        self.discard()
        return StepResult(norm, skipped=not finite)

    def discard(self) -> None:
        """Clear the gradients without an update."""
        self._optimizer.zero_grad(set_to_none=True)
        if self._rows:
            self._rows.clear()

    @property
    def loss_scale(self) -> float | None:
        """The loss scale; None where there is none."""
        return self._scaler.get_scale() if self._scaler.is_enabled() else None

    def state_bytes(self) -> int:
        """Return the size of a checkpoint: the model, and AdamW's two moments of what is trained."""
        model = sum(t.numel() * t.element_size() for t in self.module.state_dict().values())
        return int(model + sum(2 * p.numel() * p.element_size() for p in self._parameters))

    def tensors(self) -> dict[str, Any]:
        """Return model and optimizer state by parameter name, independent of the number of ranks."""
        optimizer = get_optimizer_state_dict(self.module, self._optimizer, options=_FLAT)
        # Its settings come from the configuration. As a dozen objects for each parameter they take longer to save
        # than the tensors, and restored they would overrule a changed configuration.
        state = {name: value for name, value in optimizer.items() if name.startswith("state.")}
        return {"model": self.module.state_dict(), "optimizer": state}

    def restore(self, tensors: dict[str, Any]) -> None:
        """Take back what `tensors` returned."""
        self.module.load_state_dict(tensors["model"])
        settings = get_optimizer_state_dict(self.module, self._optimizer, options=_FLAT)
        optimizer = settings | tensors["optimizer"]
        set_optimizer_state_dict(self.module, self._optimizer, optimizer, options=_FLAT)

    def scalars(self) -> dict[str, Any]:
        """Return the state of the loss scale, `{}` without one."""
        return {"scaler": self._scaler.state_dict()}

    def restore_scalars(self, scalars: dict[str, Any]) -> None:
        """Take back the loss scale; a checkpoint of another precision has none to give, or too much."""
        if self._scaler.is_enabled() and scalars.get("scaler"):
            self._scaler.load_state_dict(scalars["scaler"])


def make_scaler(training: Training, device: torch.device) -> torch.amp.GradScaler:
    """Return a loss scaler, enabled in fp16 only.

    Raises:
        ConfigurationMistake: torch disabled it (it does so silently, and fp16 then underflows).
    """
    wanted = training.precision.type == "fp16"
    scaler = torch.amp.GradScaler(
        device.type,
        enabled=wanted,
        init_scale=training.precision.initial_loss_scale,
        growth_interval=training.precision.loss_scale_growth_interval,
    )
    if wanted and not scaler.is_enabled():
        raise ConfigurationMistake(
            f"torch has no loss scaling on {device.type}", "set spec.training.precision.type: bf16"
        )
    return scaler
