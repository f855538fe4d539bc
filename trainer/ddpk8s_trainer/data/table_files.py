"""Readers of Parquet files and Hugging Face dataset directories."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ddpk8s_trainer.data.chunk import CHUNK_ROWS, Chunk, Wanted
from ddpk8s_trainer.data.sources import opening
from ddpk8s_trainer.errors import DataMistake


def read_parquet(path: Path, wanted: Wanted, field: str) -> Iterator[Chunk]:
    """Yield the samples of a Parquet file.

    Raises:
        DataMistake: It is no Parquet file or lacks a column.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with opening(path, field), pyarrow.parquet.ParquetFile(path) as file:
            wanted.check(file.schema_arrow.names, str(path))
            columns = list(wanted.fields())
            first = 1
            for batch in file.iter_batches(CHUNK_ROWS, columns=columns):
                values = {column: batch.column(column).to_pylist() for column in columns}
                yield Chunk(path, "row", range(first, first + batch.num_rows), values)
                first += batch.num_rows
    except pyarrow.ArrowException as error:
        raise DataMistake(f"{path}: {field} is no readable Parquet file: {_first_line(error)}") from error


def read_dataset(path: Path, wanted: Wanted, field: str) -> Iterator[Chunk]:
    """Yield the samples of a directory that `datasets.Dataset.save_to_disk` wrote.

    Ids of a column of type ClassLabel become the names it declares; its -1, no label, becomes null.

    Raises:
        DataMistake: The directory cannot be loaded or lacks a column.
    """
    import datasets

    # Loading is the library's affair; whatever it raises means that this directory cannot be used.
    try:
        dataset = datasets.load_from_disk(str(path)).with_format(None)
    except Exception as error:
        raise DataMistake(
            f"{path}: {field} cannot be loaded as a Hugging Face dataset: {_first_line(error)}"
        ) from error
    wanted.check(dataset.column_names, str(path))
    dataset = dataset.select_columns(list(wanted.fields()))
    feature = dataset.features[wanted.label]
    names = feature.names if isinstance(feature, datasets.ClassLabel) else None
    first = 1
    for batch in dataset.iter(CHUNK_ROWS):
        count = len(batch[wanted.label])
        values: dict[str, Sequence[Any]] = dict(batch)
        if names is not None:
            values[wanted.label] = [_class_name(names, value) for value in batch[wanted.label]]
        yield Chunk(path, "row", range(first, first + count), values)
        first += count


def _class_name(names: list[str], value: int | None) -> str | None:
    return None if value is None or value < 0 else names[value]


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
