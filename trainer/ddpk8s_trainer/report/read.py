"""Everything that a job directory tells."""

import json
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ddpk8s_trainer.errors import ConfigurationMistake
from ddpk8s_trainer.metrics.attempts import Attempt, read_attempts
from ddpk8s_trainer.metrics.events import Event, parse_event
from ddpk8s_trainer.metrics.timer import PARTS
from ddpk8s_trainer.report.series import Floats

COLUMNS = (
    "step",
    "time",
    "loss",
    "learningRate",
    "gradNorm",
    "samplesPerSecond",
    "tokensPerSecondPerDevice",
    "paddedTokensPerSecondPerDevice",
    "peakMemoryBytes",
    "lossScale",
    "skippedSteps",
    "samples",
)
# A line takes 5 microseconds to read; beyond this many, only each n-th is.
MAX_STEP_LINES = 50_000


@dataclass
class RunData:
    """What is known of a run; any part may be empty.

    Attributes:
        directory: The job directory.
        job: Name of the job.
        settings: The resolved `training` section, or empty.
        steps: Column name -> [logged steps]; NaN where a value is missing or was NaN.
        split: [parts of `PARTS`, logged steps], seconds.
        nonfinite: Steps whose loss was NaN or infinite.
        evaluations: Evaluation events by step.
        checkpoints: Checkpoint events.
        attempts: Attempts of the run, oldest first.
        skipped_lines: Lines of steps that were not read, for speed.
        unreadable: Lines that could not be read.
    """

    directory: Path
    job: str
    settings: dict[str, Any]
    steps: dict[str, Floats]
    split: Floats
    nonfinite: list[int] = field(default_factory=list)
    evaluations: list[Event] = field(default_factory=list)
    checkpoints: list[Event] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    skipped_lines: int = 0
    unreadable: int = 0

    @property
    def best(self) -> Event | None:
        """The evaluation marked best last, if any."""
        return next((event for event in reversed(self.evaluations) if event.get("best")), None)

    @property
    def scale(self) -> float:
        """What sums over the steps that were read must be multiplied by."""
        read = len(self.steps["step"])
        return 1 + self.skipped_lines / read if read else 1.0

    @property
    def last_step(self) -> int:
        """The newest step that left a line."""
        step = self.steps["step"]
        ends = [attempt.end.get("step") or 0 for attempt in self.attempts[-1:] if attempt.end]
        return int(max([step[-1] if len(step) else 0, *(e["step"] for e in self.evaluations), *ends]))


def read_run(directory: Path) -> RunData:
    """Return what a job directory tells.

    Raises:
        ConfigurationMistake: it is no job directory.
    """
    names = ("metrics.jsonl", "attempts.jsonl", "training.json")
    if not any((directory / name).is_file() for name in names):
        raise ConfigurationMistake(
            f"{directory} is no job directory: none of {', '.join(names)} is there",
            hint="give the directory <training.checkpoint.directory>/<job>",
        )
    document = _read_document(directory / "training.json")
    settings = document.get("training")
    run = RunData(
        directory=directory,
        job=str(document.get("job") or directory.resolve().name),
        settings=settings if isinstance(settings, dict) else {},
        steps={},
        split=np.zeros((len(PARTS), 0)),
        attempts=read_attempts(directory / "attempts.jsonl"),
    )
    _read_metrics(run, directory / "metrics.jsonl")
    return run


def _read_document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _read_metrics(run: RunData, path: Path) -> None:
    # Lines from before the first attempt of this run are another run's.
    begin = run.attempts[0].start["time"] if run.attempts else 0.0
    columns = {name: array("d") for name in COLUMNS}
    splits = {name: array("d") for name in PARTS}
    for event in _events(run, path):
        if event.get("time", 0.0) < begin or "step" not in event:
            continue
        if event["event"] == "step":
            for name, column in columns.items():
                column.append(_number(event.get(name)))
            split = event.get("split")
            for name, part in splits.items():
                part.append(_seconds(split, name))
            if not np.isfinite(columns["loss"][-1]):
                run.nonfinite.append(event["step"])
        elif event["event"] == "evaluation":
            run.evaluations.append(event)
        elif event["event"] == "checkpoint":
            run.checkpoints.append(event)
    run.steps = {name: np.frombuffer(column) if column else np.zeros(0) for name, column in columns.items()}
    run.split = np.array([splits[name] for name in PARTS], dtype=np.float64)


def _events(run: RunData, path: Path) -> Any:
    """Yield events; of very many steps only each n-th, but every one that holds a NaN."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        lines = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
        stride = 1 + lines // MAX_STEP_LINES
        file.seek(0)
        for number, line in enumerate(file):
            skip = number % stride and line.startswith(b'{"event": "step"')
            if skip and b'"loss": "' not in line:
                run.skipped_lines += 1
                continue
            event = parse_event(line)
            if event is not None:
                yield event
            elif line.endswith(b"\n"):
                run.unreadable += 1


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else float("nan")


def _seconds(split: Any, name: str) -> float:
    value = split.get(name) if isinstance(split, Mapping) else None
    return float(value) if isinstance(value, (int, float)) else 0.0
