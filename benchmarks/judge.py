"""One judge for all contenders: the accuracy of a model on the validation data."""

import torch
from torch import nn

from benchmarks.contenders.minimal import PadToLongest
from benchmarks.workload import Work


@torch.no_grad()
def accuracy(module: nn.Module, work: Work) -> float:
    """Return the share of validation samples that the model gets right."""
    module.eval()
    collate = PadToLongest(work.load_tokenizer().pad_token_id)
    samples = sorted(work.samples(work.validation), key=lambda sample: len(sample["input_ids"]))
    right = 0
    for first in range(0, len(samples), 64):
        batch = collate(samples[first : first + 64])
        labels = batch.pop("labels")
        right += int((module(**batch).logits.argmax(-1) == labels).sum())
    return right / len(samples)
