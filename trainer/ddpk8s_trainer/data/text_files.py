"""Readers of JSON Lines and CSV, plain or gzipped: line by line, so that a mistake is named by its line."""

import csv
import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from ddpk8s_trainer.data.chunk import CHUNK_ROWS, Chunk, Wanted
from ddpk8s_trainer.data.sources import opening
from ddpk8s_trainer.errors import DataMistake

BOM = b"\xef\xbb\xbf"
ARRAY_HINT = "the file looks like one JSON array; write one object a line: jq -c '.[]' FILE > FILE.jsonl"
Row = tuple[int, dict[str, Any]]
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def _open(path: Path) -> BinaryIO:
    """Open a file for reading bytes, unpacking it when its content is gzipped, whatever its name."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _lines(path: Path, field: str) -> Iterator[str]:
    """Yield decoded lines with their ends; a byte order mark is dropped.

    Raises:
        DataMistake: The file is not UTF-8, cannot be read, or its gzip stream is damaged.
    """
    offset = 0
    try:
        with opening(path, field), _open(path) as file:
            for number, line in enumerate(file, 1):
                raw = line.removeprefix(BOM) if number == 1 else line
                try:
                    yield raw.decode()
                except UnicodeDecodeError as error:
                    at = offset + len(line) - len(raw) + error.start
                    raise _not_utf8(path, number, at, raw) from None
                offset += len(line)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataMistake(f"{path}: {field} is a damaged gzip file: {error}") from error


def _not_utf8(path: Path, number: int, at: int, line: bytes) -> DataMistake:
    """Return the mistake, with the encoding it probably is."""
    guess = "UTF-16" if number == 1 and line.startswith(UTF16_MARKS) else "GB18030"
    try:
        line.decode("gb18030")
    except UnicodeDecodeError:
        guess = guess if guess == "UTF-16" else "ITS-ENCODING"
    return DataMistake(
        f"{path}:{number}: not UTF-8 at byte {at} of the file",
        hint=f"convert it: iconv -f {guess} -t UTF-8 {path} > {path.with_name('utf8-' + path.name)}",
    )


def _chunks(path: Path, rows: Iterator[Row], columns: tuple[str, ...]) -> Iterator[Chunk]:
    while some := list(islice(rows, CHUNK_ROWS)):
        values = {column: [row[column] for _, row in some] for column in columns}
        yield Chunk(path, "line", [number for number, _ in some], values)


def read_jsonl(path: Path, wanted: Wanted, field: str) -> Iterator[Chunk]:
    """Yield the samples of a JSON Lines file: one object on each line, blank lines are passed over.

    Raises:
        DataMistake: A line is no JSON object or lacks a column.
    """
    numbered = enumerate(_lines(path, field), 1)
    rows = ((number, _json_object(line, path, number, wanted)) for number, line in numbered if line.strip())
    return _chunks(path, rows, tuple(wanted.fields()))


def _json_object(line: str, path: Path, number: int, wanted: Wanted) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        array = number == 1 and line.lstrip().startswith("[")
        raise DataMistake(
            f"{path}:{number}:{error.colno}: not a line of JSON: {error.msg[:1].lower()}{error.msg[1:]}",
            hint=ARRAY_HINT if array else "each line must be one whole JSON object",
        ) from None
    if not isinstance(value, dict):
        example = json.dumps(dict.fromkeys(wanted.fields(), "..."))
        raise DataMistake(
            f"{path}:{number}: a JSON {_json_kind(value)} where an object is expected",
            hint=ARRAY_HINT if isinstance(value, list) else f"write lines such as {example}",
        )
    wanted.check(value, f"{path}:{number}")
    return value


def _json_kind(value: Any) -> str:
    kinds = {list: "array", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")


def read_csv(path: Path, wanted: Wanted, field: str) -> Iterator[Chunk]:
    """Yield the samples of a CSV file with a header line (TSV when its name ends so).

    Quoted fields may hold line breaks; a sample's line is the first of its record. Blank lines are passed
    over.

    Raises:
        DataMistake: A record has more or fewer fields than the header, quoting is broken, or a column is
        missing.
    """
    csv.field_size_limit(sys.maxsize)  # the default ends at 128 KiB, less than a long document
    tab = ".tsv" in path.suffixes
    reader = csv.reader(_lines(path, field), delimiter="\t" if tab else ",", strict=True)
    records = _records(reader, path)
    first, header = next(records, (0, []))
    if not header:
        return iter(())
    wanted.check(header, f"{path}:{first}")
    places = {column: _only_place(header, column, f"{path}:{first}") for column in wanted.fields()}
    return _chunks(path, _csv_rows(records, path, len(header), places), tuple(places))


def _csv_rows(
    records: Iterator[tuple[int, list[str]]], path: Path, width: int, places: dict[str, int]
) -> Iterator[Row]:
    for number, record in records:
        if len(record) != width:
            raise DataMistake(
                f"{path}:{number}: {len(record)} fields where the header has {width}",
                hint='a text with commas, quotes or line breaks must be quoted: "like ""this"", for example"',
            )
        yield number, {column: record[at] for column, at in places.items()}


def _records(reader: Any, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line, fields) of each record that is not blank."""
    while True:
        first = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataMistake(
                f"{path}:{first}: broken CSV: {error}",
                hint="look for a quote that is not closed or not doubled",
            ) from None
        if record:
            yield first, record


def _only_place(header: list[str], column: str, where: str) -> int:
    if header.count(column) > 1:
        raise DataMistake(f"{where}: {header.count(column)} columns are named {column!r}")
    return header.index(column)
