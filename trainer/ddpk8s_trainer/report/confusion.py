"""The confusion matrix, as a table: labels of any script and length are text of the page."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddpk8s_trainer.metrics.events import Event

# Wider than this a matrix is no table to read; then the most frequent mistakes are listed.
MOST_LABELS = 12
MOST_MISTAKES = 15


@dataclass(frozen=True, slots=True)
class Cell:
    """A count, and its share of the true label's samples (0 to 1)."""

    count: int
    share: float
    right: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A true label: its cells, its number of samples, and precision, recall and F1 (None without samples)."""

    label: str
    cells: list[Cell]
    samples: int
    precision: float | None
    recall: float | None
    f1: float | None

    @property
    def worst(self) -> float:
        """What to sort by, so that bad labels come first; one without samples is not bad."""
        return 2.0 if self.f1 is None else self.f1


@dataclass(frozen=True, slots=True)
class Mistake:
    """Samples of one label taken for another."""

    true: str
    predicted: str
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class Confusion:
    """What the page shows of it.

    Attributes:
        step: Of the evaluation.
        labels: In the order of columns.
        rows: One per true label; without cells if there are too many labels.
        mistakes: The most frequent ones, if there are too many labels for a matrix.
    """

    step: int
    labels: list[str]
    rows: list[Row]
    mistakes: list[Mistake]

    @property
    def as_matrix(self) -> bool:
        """Whether it is small enough for a matrix."""
        return len(self.labels) <= MOST_LABELS


def confusion_of(event: Event | None) -> Confusion | None:
    """Return the confusion of an evaluation, or None if it has none."""
    if event is None or not event.get("confusion"):
        return None
    counts = np.array(event["confusion"], dtype=np.int64)
    labels = [str(label) for label in event.get("labels") or range(len(counts))]
    if counts.shape != (len(labels), len(labels)):
        return None
    samples = counts.sum(axis=1)
    shares = counts / np.maximum(samples, 1)[:, None]
    small = len(labels) <= MOST_LABELS
    rows = [_row(label, number, counts, shares, with_cells=small) for number, label in enumerate(labels)]
    mistakes = [] if small else list(_mistakes(labels, counts, shares))
    return Confusion(int(event["step"]), labels, rows, mistakes)


def _row(
    label: str,
    number: int,
    counts: npt.NDArray[np.int64],
    shares: npt.NDArray[np.float64],
    *,
    with_cells: bool,
) -> Row:
    right, true, predicted = counts[number, number], counts[number].sum(), counts[:, number].sum()
    cells = [
        Cell(int(counts[number, column]), float(shares[number, column]), column == number)
        for column in range(len(counts) if with_cells else 0)
    ]
    return Row(
        label=label,
        cells=cells,
        samples=int(true),
        precision=float(right / predicted) if predicted else None,
        recall=float(right / true) if true else None,
        f1=float(2 * right / (true + predicted)) if true + predicted else None,
    )


def _mistakes(
    labels: list[str], counts: npt.NDArray[np.int64], shares: npt.NDArray[np.float64]
) -> Iterator[Mistake]:
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    for index in np.argsort(wrong, axis=None, kind="stable")[::-1][:MOST_MISTAKES]:
        true, predicted = divmod(int(index), len(labels))
        if wrong[true, predicted]:
            count, share = int(wrong[true, predicted]), float(shares[true, predicted])
            yield Mistake(labels[true], labels[predicted], count, share)
