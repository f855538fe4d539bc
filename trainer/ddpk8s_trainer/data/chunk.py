"""What every reader yields: some samples, and where they come from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ddpk8s.spec.training import Data
from ddpk8s_trainer.errors import DataMistake

CHUNK_ROWS = 4096


@dataclass(frozen=True)
class Chunk:
    """Samples in the order of their file, values as they stand there.

    Attributes:
        path: The file, or the directory of a Hugging Face dataset.
        unit: What `numbers` count, from 1: ``line`` of a text file or ``row`` of a table.
        numbers: Line or row of each sample.
        columns: Values by column name, each as long as `numbers`.
    """

    path: Path
    unit: str
    numbers: Sequence[int]
    columns: Mapping[str, Sequence[Any]]

    def where(self, index: int) -> str:
        """Return the place of a sample as a user finds it."""
        return place(self.path, self.unit, self.numbers[index])


def place(path: Path, unit: str, number: int) -> str:
    """Return ``file:12`` for a line and ``file, row 12`` for a row."""
    return f"{path}:{number}" if unit == "line" else f"{path}, row {number}"


@dataclass(frozen=True)
class Wanted:
    """Columns that the configuration names."""

    text: str
    pair: str | None
    label: str

    @classmethod
    def of(cls, data: Data) -> "Wanted":
        """Return the columns of the section `spec.training.data`."""
        return cls(data.text_column, data.text_pair_column, data.label_column)

    def fields(self) -> dict[str, str]:
        """Return the configuration field that names each column."""
        named = {self.text: "spec.training.data.textColumn", self.label: "spec.training.data.labelColumn"}
        return named | ({self.pair: "spec.training.data.textPairColumn"} if self.pair else {})

    def check(self, present: Iterable[str], where: str) -> None:
        """Check that all wanted columns are there.

        Raises:
            DataMistake: One is missing.
        """
        names = [str(name) for name in present]
        for column, field in self.fields().items():
            if column in names:
                continue
            near = get_close_matches(column, names, n=1, cutoff=0.6)
            listed = ", ".join(names) or "none"
            raise DataMistake(
                f"{where}: no column {column!r}, which {field} names; the columns are: {listed}",
                hint=f"did you mean {near[0]!r}?" if near else f"set {field} to one of them",
            )
