"""A fingerprint of a model's parameters."""

import torch
import xxhash
from torch import nn


def parameters_digest(model: nn.Module) -> str:
    """Return a digest of names, shapes, types and values of all parameters, the same on any device.

    Tied parameters count once; the order in which modules were made does not matter.
    """
    digest = xxhash.xxh3_128()
    for name, parameter in sorted(model.named_parameters()):
        value = parameter.detach().cpu().contiguous()
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return f"xxh3:{digest.hexdigest()}"
