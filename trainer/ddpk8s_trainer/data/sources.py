"""Where samples are: files by what the configuration names, their format, and a hash of their contents."""

import glob
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import xxhash

from ddpk8s.spec.training import Data
from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.errors import DataMistake

Split = Literal["train", "validation"]
Format = Literal["jsonl", "csv", "parquet", "dataset"]

SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
DATASET_FILES = ("dataset_dict.json", "state.json")
SPLIT_NAMES = {"train": ("train",), "validation": ("validation", "valid", "dev")}


@dataclass(frozen=True)
class Source:
    """Files of one split, all of one format; for a Hugging Face dataset its one directory."""

    split: Split
    field: str
    format: Format
    paths: tuple[Path, ...]

    def files(self) -> list[Path]:
        """Return the files that hold the samples."""
        if self.format != "dataset":
            return list(self.paths)
        return sorted(path for path in self.paths[0].rglob("*") if path.is_file())

    def content_hash(self) -> str:
        """Return a hash of names and contents of all files.

        Raises:
            DataMistake: A file cannot be read.
        """
        digest = xxhash.xxh3_128(self.format.encode())
        for path in self.files():
            digest.update(f"{path.name} {path.stat().st_size} ".encode())
            with opening(path, self.field), path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
                    beat()
        return digest.hexdigest()

    def total_bytes(self) -> int:
        """Return the size of all files."""
        return sum(path.stat().st_size for path in self.files())


class opening:  # noqa: N801 - reads as the statement it is
    """Turn the errors of opening and reading `path` into a `DataMistake`."""

    def __init__(self, path: Path, field: str) -> None:
        self.path = path
        self.field = field

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise DataMistake(f"{self.path}: {self.field} cannot be read: {reason}") from error


def find_source(data: Data, split: Split) -> Source | None:
    """Return the files of a split, or None when the configuration has no validation data.

    Raises:
        DataMistake: There is no such file, it is empty of samples files, or its format cannot be told.
    """
    given = data.train if split == "train" else data.validation
    if given is None:
        return None
    field = f"spec.training.data.{split}"
    path = Path(given)
    if data.format == "dataset" or (data.format == "auto" and _is_dataset(path)):
        return Source(split, field, "dataset", (_dataset_directory(path, split, field),))
    files = _expand(given, field)
    if path.is_dir():
        files = _files_in(path, files, data.format, field)
    formats = {_format_of(file, data.format, field): file for file in files}
    if len(formats) > 1:
        named = " and ".join(f"{file.name} ({kind})" for kind, file in formats.items())
        raise DataMistake(
            f"{field} {given} mixes formats: {named}",
            hint="name files of one format by a glob such as *.jsonl",
        )
    return Source(split, field, next(iter(formats)), tuple(files))


def _expand(given: str, field: str) -> list[Path]:
    """Return the files of a path, a directory or a glob, sorted by name."""
    path = Path(given)
    if path.is_file():
        return [path]
    if path.is_dir():
        inside = (entry for entry in path.rglob("*") if entry.is_file())
        return sorted(entry for entry in inside if not _is_hidden(entry.relative_to(path)))
    if glob.has_magic(given):
        found = (Path(match) for match in glob.glob(given, recursive=True))  # noqa: PTH207 - absolute patterns too
        matches = sorted(match for match in found if match.is_file())
        if not matches:
            raise DataMistake(f"{field} {given} matches no file", hint=_near(path))
        return matches
    raise DataMistake(f"{field} {given} does not exist", hint=_near(path))


def _is_hidden(path: Path) -> bool:
    """Return whether a file or a directory above it is one that tools leave behind (.git, _SUCCESS)."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _files_in(path: Path, files: list[Path], wanted: str, field: str) -> list[Path]:
    """Return those files of a directory that hold samples: others (README, LICENSE) may lie beside them."""
    kept = [file for file in files if _suffix_format(file) and wanted in ("auto", _suffix_format(file))]
    if kept:
        return kept
    kind = "data" if wanted == "auto" else wanted
    known = _names(SUFFIXES)
    raise DataMistake(
        f"{field} {path} is a directory without {kind} files",
        hint=f"files must end in {known} (or these with .gz); it holds {_names(f.name for f in files)}",
    )


def _suffix_format(path: Path) -> Format | None:
    name = path.name.lower().removesuffix(".gz")
    return SUFFIXES.get(Path(name).suffix)


def _format_of(path: Path, wanted: str, field: str) -> Format:
    """Return the format of a file: what the configuration says, else what its name says."""
    if wanted in ("jsonl", "csv", "parquet"):
        return wanted  # type: ignore[return-value]
    found = _suffix_format(path)
    if found is None:
        raise DataMistake(
            f"{field} {path} does not tell its format by its name",
            hint=f"set spec.training.data.format, or name the file with one of {_names(SUFFIXES)}",
        )
    return found


def _is_dataset(path: Path) -> bool:
    return any((path / name).is_file() for name in DATASET_FILES)


def _dataset_directory(path: Path, split: Split, field: str) -> Path:
    """Return the directory of the split, which lies below a directory with several splits."""
    if not path.exists():
        raise DataMistake(f"{field} {path} does not exist", hint=_near(path))
    if not _is_dataset(path):
        raise DataMistake(
            f"{field} {path} is no Hugging Face dataset: it has neither {' nor '.join(DATASET_FILES)}",
            hint="write it by save_to_disk of the library datasets",
        )
    if not (path / "dataset_dict.json").is_file():
        return path
    for name in SPLIT_NAMES[split]:
        if (path / name).is_dir():
            return path / name
    present = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
    raise DataMistake(
        f"{field} {path} has no split {' or '.join(SPLIT_NAMES[split])}, only {_names(present)}",
        hint=f"name the directory of the split itself, such as {path / (present or [split])[0]}",
    )


def _near(path: Path) -> str:
    """Return a hint with names near a missing one, or with the nearest directory that exists."""
    parent = path.parent
    if not parent.is_dir():
        existing = next(folder for folder in path.absolute().parents if folder.is_dir())
        return f"there is no directory {parent}; {existing} exists and holds {_names(_listed(existing))}"
    names = _listed(parent)
    near = get_close_matches(path.name, names, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(str(parent / name) for name in near)}?"
    return f"{parent.absolute()} holds {_names(names)}"


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:
        return []


def _names(names: Iterable[str], most: int = 10) -> str:
    """Return names as a list to read, cut after `most`."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return (", ".join(listed[:most]) + more) or "nothing"
