"""Samples to the padded tensors of a micro-batch."""

import numpy as np
import torch
from numpy.typing import NDArray

from ddpk8s_trainer.data.store import TokenDataset


def collate(
    dataset: TokenDataset,
    ids: NDArray[np.int64],
    pad_token_id: int,
    pad_length: int | None,
    device: torch.device | str,
) -> dict[str, torch.Tensor]:
    """Return the model inputs of some samples, padded on the right.

    Args:
        dataset: The tokenised samples.
        ids: Samples of the micro-batch, ``[batch]``; may be empty, which gives tensors of ``[0, 1]``.
        pad_token_id: What input_ids are filled up with.
        pad_length: Tokens to pad to; None pads to the longest of these samples.
        device: Where the tensors go.

    Returns:
        int64 tensors `input_ids` and `attention_mask` (1 on tokens, 0 on padding), both ``[batch, length]``,
        `token_type_ids` likewise when the data have pairs, and `labels` ``[batch]``.
    """
    lengths = dataset.lengths[ids].astype(np.int64)
    width = pad_length or int(lengths.max(initial=1))
    mask = np.arange(width) < lengths[:, None]
    # Token positions of all samples, one after the other: each sample's offset, counted up within the sample.
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(int(lengths.sum())) + np.repeat(dataset.offsets[ids] - starts, lengths)
    batch = {
        "input_ids": _spread(dataset.tokens, positions, mask, pad_token_id),
        "attention_mask": mask.astype(np.int64),
    }
    if dataset.token_types is not None:
        batch["token_type_ids"] = _spread(dataset.token_types, positions, mask, 0)
    batch["labels"] = dataset.labels[ids].astype(np.int64)
    return {name: _to_device(values, device) for name, values in batch.items()}


def _spread(
    flat: NDArray[np.integer], positions: NDArray[np.int64], mask: NDArray[np.bool_], padding: int
) -> NDArray[np.int64]:
    """Lay flat values out in the rows of `mask`, which has as many places as there are positions."""
    out = np.full(mask.shape, padding, np.int64)
    out[mask] = flat[positions]
    return out


def _to_device(values: NDArray[np.int64], device: torch.device | str) -> torch.Tensor:
    tensor = torch.from_numpy(values)
    if torch.device(device).type == "cuda":  # pinned memory lets the copy run beside the computation
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
