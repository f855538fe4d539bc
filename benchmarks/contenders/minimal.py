"""The least that makes a batch: samples padded to the longest, in C++, without a tokenizer."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence


class PadToLongest:
    """A collator for samples of `input_ids`, a tensor, and `labels`, a number."""

    def __init__(self, pad_token_id: int) -> None:
        """Take what to fill up with."""
        self._pad = pad_token_id

    def __call__(self, samples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Return `input_ids` and `attention_mask` ``[batch, length]``, and `labels` ``[batch]``."""
        rows = [sample["input_ids"] for sample in samples]
        input_ids = pad_sequence(rows, batch_first=True, padding_value=self._pad)
        return {
            "input_ids": input_ids,
            "attention_mask": (input_ids != self._pad).long(),
            "labels": torch.tensor([sample["labels"] for sample in samples]),
        }
