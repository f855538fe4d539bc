"""The tables of the report: evaluations, attempts, artifacts, settings."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ddpk8s_trainer.metrics.attempts import Attempt
from ddpk8s_trainer.metrics.events import Event
from ddpk8s_trainer.report.read import RunData
from ddpk8s_trainer.report.words import duration, moment, number, percent, size

MOST_ROWS = 20

Table = list[list[str]]


def evaluations(run: RunData) -> Table:
    """Return step, epoch, loss, accuracy, F1, samples, mark; of many evaluations the newest and the best."""
    shown = run.evaluations[-MOST_ROWS:]
    if run.best is not None and run.best not in shown:
        shown = [run.best, *shown[1:]]
    return [
        [
            number(event["step"]),
            number(event.get("epoch"), 3),
            number(event.get("loss")),
            percent(event.get("accuracy")),
            percent(event.get("f1")),
            number(event.get("samples")),
            "best" if event is run.best else "",
        ]
        for event in shown
    ]


def attempts(run: RunData) -> Table:
    """Return number, start, duration, processes, resumed step, last step, end, lost steps, lost time."""
    rows = []
    for index, attempt in list(enumerate(run.attempts, start=1))[-MOST_ROWS:]:
        start, resumed = attempt.start, attempt.start.get("resumedStep")
        last = attempt.last_time if attempt.end or index < len(run.attempts) else _last_time(run, attempt)
        rows.append(
            [
                str(index),
                moment(start["time"]),
                duration(max(0.0, last - start["time"])),
                number(start.get("worldSize")),
                "the beginning" if resumed is None else number(resumed),
                number(attempt.last_step if attempt.last_step is not None else run.last_step),
                _end(attempt, is_last=index == len(run.attempts)),
                number(start.get("lostSteps") or 0),
                duration(float(start.get("lostSeconds") or 0.0)),
            ]
        )
    return rows


def _last_time(run: RunData, attempt: Attempt) -> float:
    events: list[Event] = [*run.evaluations[-1:], *run.checkpoints[-1:]]
    times = [float(event.get("time", 0.0)) for event in events]
    return max([attempt.last_time, *times, *map(float, run.steps["time"][-1:])])


def _end(attempt: Attempt, *, is_last: bool) -> str:
    if attempt.end is not None:
        return str(attempt.end.get("reason"))
    return "no word of an end" if is_last else "killed"


def artifacts(run: RunData) -> Table:
    """Return relative path, what it is, and size of what the job directory holds."""
    known = {
        "model": "model, Hugging Face directory",
        "metrics.jsonl": "metrics, one event a line",
        "attempts.jsonl": "starts and ends",
        "tensorboard": "TensorBoard event files",
        "training.json": "resolved settings",
        "samples": "ids of the samples of every step",
        "archive": "checkpoints and metrics of earlier runs",
    }
    found = [(run.directory / name, text) for name, text in known.items()]
    best = {event["step"] for event in run.checkpoints if event.get("best")}
    for path in sorted(run.directory.glob("step-*")):
        step = path.name.removeprefix("step-")
        is_best = step.isdigit() and bool(best) and int(step) == max(best)
        found.append((path, "checkpoint, best model" if is_best else "checkpoint"))
    return [
        [path.name + ("/" if path.is_dir() else ""), text, size(_bytes(path))]
        for path, text in found
        if path.exists()
    ]


def _bytes(path: Path) -> int:
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    return sum(file.stat().st_size for file in files)


def settings(run: RunData) -> Table:
    """Return the settings as dotted names with their values, in the order of the file."""
    return [[name, value] for name, value in _flatten(run.settings)]


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and (value or not prefix):
        for key, item in value.items():
            yield from _flatten(item, f"{prefix}.{key}" if prefix else str(key))
    elif value is not None:
        yield prefix, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
