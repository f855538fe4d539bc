"""Which rank saw which sample in which step: an audit trail, switched on by `metrics.sampleLog`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt


class SampleLog:
    """One JSON line per step and rank: `{"attempt", "step", "ids"}`."""

    def __init__(self, directory: Path, rank: int, attempt: int, *, enabled: bool) -> None:
        self._attempt = attempt
        self._path = directory / f"rank-{rank:05d}.jsonl"
        self._enabled = enabled
        self._file: TextIO | None = None

    def write(self, step: int, batches: Sequence[npt.NDArray[np.int64]]) -> None:
        """Note the samples of this rank's micro-batches of `step`."""
        if self._enabled:
            if self._file is None:
                # Not earlier: a resume may have put a shortened file in the place of the old one.
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("a", encoding="utf-8")
            ids = [int(i) for batch in batches for i in batch]
            self._file.write(json.dumps({"attempt": self._attempt, "step": step, "ids": ids}) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()


def cut_sample_logs(directory: Path, step: int) -> None:
    """Forget what was noted after `step`, for all ranks of earlier attempts: those steps are trained again."""
    for path in sorted(directory.glob("rank-*.jsonl")):
        kept = [line for line in path.read_text(encoding="utf-8").splitlines() if _is_kept(line, step)]
        temporary = path.with_suffix(".tmp")
        temporary.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        temporary.replace(path)


def _is_kept(line: str, step: int) -> bool:
    try:
        return bool(json.loads(line)["step"] <= step)
    except (ValueError, KeyError):
        return False  # a line that a kill cut short
