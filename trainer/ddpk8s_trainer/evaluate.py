"""Exact evaluation: every sample counts once, for any batch size and any number of processes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.distributed import Gang


@dataclass(frozen=True)
class Evaluation:
    """Figures of one evaluation.

    Attributes:
        loss: Mean cross entropy of all samples.
        accuracy: Share of samples whose most likely label is right, 0 to 1.
        f1: Mean over the labels of their F1 (macro average), 0 to 1. A label that neither occurs nor is
            predicted counts as 0, as in scikit-learn with all labels given.
        confusion: Rows are true labels, columns predicted ones; number of samples.
        samples: Number of samples.
    """

    loss: float
    accuracy: float
    f1: float
    confusion: list[list[int]]
    samples: int

    def value(self, metric: str) -> float:
        """Return the figure called `metric`, negated for the loss, so that more is better."""
        return -self.loss if metric == "loss" else float(getattr(self, metric))

    def is_better_than(self, best: float | None, metric: str) -> bool:
        """Whether this beats `best` (a `value`); NaN never does."""
        value = self.value(metric)
        return not math.isnan(value) and (best is None or value > best)


@torch.no_grad()
def evaluate(
    forward: Callable[[dict[str, torch.Tensor]], torch.Tensor],
    batches: Sequence[npt.NDArray[np.int64]],
    collate: Callable[[npt.NDArray[np.int64]], dict[str, torch.Tensor]],
    num_labels: int,
    gang: Gang,
) -> Evaluation:
    """Return the evaluation over all ranks' `batches`.

    Args:
        forward: Gives logits, float32 [batch, labels], in evaluation mode.
        batches: Sample ids of this rank; together the ranks have every sample once.
        collate: Makes a batch of ids: inputs of the model, and `labels` int64 [batch].
        num_labels: Number of labels.
        gang: The ranks; ranks need not have equally many batches, since they meet once, at the end.
    """
    confusion = torch.zeros(num_labels * num_labels, dtype=torch.float64, device=gang.device)
    loss = torch.zeros((), dtype=torch.float64, device=gang.device)
    for ids in batches:
        beat()
        batch = collate(ids)
        labels = batch.pop("labels")
        logits = forward(batch)
        # Summed in float64, so that the order of samples does not show.
        loss += functional.cross_entropy(logits, labels, reduction="none").double().sum()
        cells = labels * num_labels + logits.argmax(dim=1)
        confusion += torch.bincount(cells, minlength=num_labels * num_labels).double()
    total, *cells_all = gang.sum([loss.item(), *confusion.tolist()])
    table = np.array(cells_all).round().astype(np.int64).reshape(num_labels, num_labels)
    return summarize(total, table)


def summarize(loss_sum: float, confusion: npt.NDArray[np.int64]) -> Evaluation:
    """Return the figures from summed loss and confusion matrix [true, predicted]."""
    samples = int(confusion.sum())
    right = np.diag(confusion)
    predicted_plus_true = confusion.sum(axis=0) + confusion.sum(axis=1)
    f1 = np.divide(2.0 * right, predicted_plus_true, out=np.zeros(len(right)), where=predicted_plus_true > 0)
    return Evaluation(
        loss=loss_sum / samples if samples else math.nan,
        accuracy=float(right.sum() / samples) if samples else math.nan,
        f1=float(f1.mean()),
        confusion=[[int(cell) for cell in row] for row in confusion],
        samples=samples,
    )


def as_event(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures as an event's fields."""
    return {
        "loss": evaluation.loss,
        "accuracy": evaluation.accuracy,
        "f1": evaluation.f1,
        "confusion": evaluation.confusion,
        "samples": evaluation.samples,
    }
