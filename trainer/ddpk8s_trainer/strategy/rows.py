"""Exchange of the word embedding's gradient: only the rows that some rank's tokens used; all others are zero.

In small models the word embedding is most of the parameters, while a step uses a few per cent of its rows. DDP
would fill, copy and send all of them.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class EmbeddingRows:
    """The gradient of one embedding, summed up here instead of in a bucket of DDP. Exact: nothing is left out."""

    def __init__(self, embedding: nn.Embedding, world_size: int) -> None:
        """Take over; the weight is made the same on all ranks, as DDP does. Collective."""
        embedding.sparse = True  # backward then gives (rows, values) instead of a tensor of the weight's size
        self._weight = embedding.weight
        self._world_size = world_size
        self._sum = torch.zeros_like(self._weight)
        self._used = torch.zeros(len(self._weight), dtype=torch.uint8)
        hooked: Any = self._weight  # torch's own method has no types
        hooked.register_post_accumulate_grad_hook(self._take)
        dist.broadcast(self._weight.detach(), 0)

    def _take(self, weight: torch.Tensor) -> None:
        """Add the gradient of one backward pass."""
        gradient = weight.grad
        assert gradient is not None
        rows = gradient._indices()[0]
        self._sum.index_add_(0, rows, gradient._values())
        self._used[rows] = 1
        weight.grad = None

    def exchange(self) -> None:
        """Average over ranks and give the weight its gradient. Collective."""
        dist.all_reduce(self._used, dist.ReduceOp.MAX)
        rows = self._used.nonzero().squeeze(1)
        values = self._sum[rows]
        dist.all_reduce(values)
        self._sum[rows] = values.div_(self._world_size)
        self._weight.grad = self._sum

    def clear(self) -> None:
        """Forget the gradient."""
        self._sum[self._used.nonzero().squeeze(1)] = 0.0
        self._used.zero_()
        self._weight.grad = None


def take_embedding(module: nn.Module, world_size: int) -> EmbeddingRows | None:
    """Take the word embedding from DDP where that is possible and pays; call it before DDP wraps `module`. Collective.

    Not on GPUs, where finding the rows would wait for the device, and not for a weight that another part of the
    model shares.
    """
    model: Any = module
    embedding = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    if world_size == 1 or not isinstance(embedding, nn.Embedding) or embedding.weight.device.type != "cpu":
        return None
    weight = embedding.weight
    names = [name for name, p in module.named_parameters(remove_duplicate=False) if p is weight]
    others = sum(p.requires_grad for p in module.parameters()) - 1
    if not weight.requires_grad or len(names) != 1 or not others or embedding.max_norm is not None:
        return None
    # The only way to keep a parameter out of DDP; torchrec and FSDP use it, too.
    ddp: Any = DistributedDataParallel
    ddp._set_params_and_buffers_to_ignore_for_model(module, names)
    return EmbeddingRows(embedding, world_size)
