"""The table of results, on paper and on the screen."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Row
from benchmarks.machine import facts

RESULTS = Path(__file__).resolve().parent / "results.md"
_MARK = {True: "yes", False: "**no**", None: ""}


def as_markdown(rows: Sequence[Row]) -> str:
    """Return a table."""
    lines = ["| What | Result | Bar | Holds | |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.what} | {row.figure} | {row.bar} | {_MARK[row.passed]} | {row.detail} |" for row in rows
    ]
    return "\n".join(lines) + "\n"


def write_section(name: str, rows: Sequence[Row], how: str, path: Path = RESULTS) -> None:
    """Put the results of one benchmark into the file; those of others stay."""
    sections = _read(path)
    sections[name] = f"{' '.join(how.split())}\n\n{as_markdown(rows)}\n{facts()}\n"
    text = "# Benchmarks\n\nWritten by `python -m benchmarks`. Ratios hold for the machine they were measured on.\n"
    for title in sorted(sections, key=ORDER.index):
        text += f"\n## {title}\n\n{sections[title]}"
    path.write_text(text, encoding="utf-8")


ORDER = ("throughput", "accuracy", "checkpoint", "overhead", "gang", "cli")


def _read(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    parts = path.read_text(encoding="utf-8").split("\n## ")[1:]
    found = (part.partition("\n") for part in parts)
    return {title.strip(): body.strip("\n") + "\n" for title, _, body in found if title.strip() in ORDER}
