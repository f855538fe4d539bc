"""Samples of a split, checked: texts are texts, and whatever is not is named by file and line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ddpk8s.spec.training import Data
from ddpk8s_trainer.data.chunk import Chunk, Wanted
from ddpk8s_trainer.data.sources import Source
from ddpk8s_trainer.data.table_files import read_dataset, read_parquet
from ddpk8s_trainer.data.text_files import read_csv, read_jsonl
from ddpk8s_trainer.errors import DataMistake

READERS = {"jsonl": read_jsonl, "csv": read_csv, "parquet": read_parquet, "dataset": read_dataset}


@dataclass(frozen=True)
class Samples:
    """A chunk whose texts are checked; labels are still as in the file.

    Attributes:
        chunk: Where the samples come from.
        texts: The text of each sample.
        pairs: The second text of each sample, or None when the task has none.
        labels: The label of each sample as it stands in the file.
    """

    chunk: Chunk
    texts: list[str]
    pairs: list[str] | None
    labels: list[Any]


def read_samples(source: Source, data: Data) -> Iterator[Samples]:
    """Yield all samples of a source, some thousand at a time.

    Raises:
        DataMistake: Something in a file is not as the configuration says, or there is no sample at all.
    """
    wanted = Wanted.of(data)
    reader = READERS[source.format]
    empty = True
    for path in source.paths:
        for chunk in reader(path, wanted, source.field):
            if len(chunk.numbers):
                empty = False
                yield _checked(chunk, wanted)
    if empty:
        named = str(source.paths[0]) if len(source.paths) == 1 else f"{len(source.paths)} files"
        raise DataMistake(f"{source.field} has no samples: {named} is empty")


def _checked(chunk: Chunk, wanted: Wanted) -> Samples:
    texts = _texts(chunk, wanted.text, "spec.training.data.textColumn")
    pairs = _texts(chunk, wanted.pair, "spec.training.data.textPairColumn") if wanted.pair else None
    return Samples(chunk, texts, pairs, list(chunk.columns[wanted.label]))


def _texts(chunk: Chunk, column: str, field: str) -> list[str]:
    values = list(chunk.columns[column])
    for index, value in enumerate(values):
        if isinstance(value, str):
            if value.isascii() or _is_unicode(value):
                continue
            fault = "holds half of a surrogate pair, which is no character"
        else:
            fault = "is null" if value is None else f"is {_kind(value)}, not a text"
        raise DataMistake(
            f"{chunk.where(index)}: {column!r} {fault}",
            hint=f"leave the sample out, or name another column in {field}",
        )
    return values


def _is_unicode(text: str) -> bool:
    """Return whether a text can be encoded; JSON can smuggle lone surrogates in by escapes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    kinds: dict[type, str] = {list: "a list", dict: "an object", bytes: "bytes"}
    return kinds.get(type(value), f"a {type(value).__name__}")
