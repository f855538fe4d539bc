"""What is left to say when the agent is gone: the result, or why there is none and what to do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddpk8s.local.texts import format_seconds

STATES = {0: "finished", 1: "failed", 78: "mistake", 143: "stopped"}


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        job: Name of the job.
        run_id: Its run.
        exit_code: That of the agent that speaks for the run.
        word: Its last word: `reason`, `message`, `rank`, `attempt`, `restarts`...; empty without one.
        state_directories: The agents' files, by node rank.
        job_directory: Checkpoints, model and report; None with a script of the user.
        seconds: Wall time.
        nproc: Processes of each node.
        node: The node whose agent speaks.
    """

    job: str
    run_id: str
    exit_code: int
    word: Mapping[str, Any]
    state_directories: Sequence[Path]
    job_directory: Path | None
    seconds: float
    nproc: int = 1
    node: int = 0

    @property
    def state(self) -> str:
        """One word for the record: finished, failed, mistake, stopped or killed."""
        return STATES.get(self.exit_code, "killed")

    @property
    def attempt_directory(self) -> Path | None:
        """Logs of the last attempt, on the node of the rank that failed; None if there was no attempt."""
        attempt, rank, node = (self.word.get(name) for name in ("attempt", "rank", "node"))
        if attempt is None:
            return None
        if rank is not None:
            node = rank // self.nproc
        elif node is None:
            node = self.node
        node = min(max(node, 0), len(self.state_directories) - 1)
        directory = self.state_directories[node] / f"attempt-{attempt}"
        return directory if directory.is_dir() else self.state_directories[0] / directory.name

    @property
    def finished(self) -> Mapping[str, Any]:
        """What the trainer left at its end; rank 0 writes it, on node 0."""
        attempt = self.word.get("attempt")
        return read_json(self.state_directories[0] / f"attempt-{attempt}" / "status" / "finished.json")


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def newest_step(job_directory: Path | None, run_id: str) -> int | None:
    """Return the step of the newest complete checkpoint of a run, or None."""
    if job_directory is None:
        return None
    manifests = map(read_json, job_directory.glob("step-*/manifest.json"))
    return max((manifest["step"] for manifest in manifests if manifest.get("runId") == run_id), default=None)


def result_lines(outcome: Outcome) -> list[str]:
    """Return the summary of a training that finished, for stdout."""
    restarts = outcome.word.get("restarts") or 0
    counted = f", {restarts} restart{'s' if restarts > 1 else ''}" if restarts else ""
    step = outcome.word.get("step")
    until = f" at step {step}" if step is not None else ""
    lines = [f"{outcome.job} finished{until} in {format_seconds(outcome.seconds)}{counted}"]
    finished = outcome.finished
    evaluation = finished.get("evaluation")
    if isinstance(evaluation, Mapping):
        lines += _table(_evaluation_rows(evaluation))
    rows = {name: finished.get(name) for name in ("model", "report", "checkpoint")} | {
        "logs": outcome.attempt_directory
    }
    return lines + _table({name: shown(Path(path)) for name, path in rows.items() if path})


def failure_lines(outcome: Outcome) -> list[str]:
    """Return what is to be said of a training that did not finish, for stderr; the agent has spoken already."""
    step = newest_step(outcome.job_directory, outcome.run_id)
    again = "run the same command again" + (f" to continue from step {step}" if step is not None else "")
    if outcome.state == "stopped":
        return [f"{outcome.job} stopped; {again}"]
    silent = f"the agent ended with exit code {outcome.exit_code} without a word"
    what = "the mistake above" if outcome.state == "mistake" else outcome.word.get("message") or silent
    lines = [f"{outcome.job} failed: {what}"]
    if outcome.attempt_directory:
        lines.append(f"  logs: {shown(outcome.attempt_directory)}")
    return [
        *lines,
        f"  next: {'correct it' if outcome.state == 'mistake' else 'mend the cause'}, then {again}",
    ]


def shown(path: Path) -> str:
    """Return a path relative to the current directory, where it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _evaluation_rows(evaluation: Mapping[str, Any]) -> dict[str, str]:
    metric, value = evaluation.get("metric"), evaluation.get("value")
    if metric and isinstance(value, float):
        return {str(metric): f"{value:.4f} (best, at step {evaluation.get('step')})"}
    return {name: f"{number:.4f}" for name, number in evaluation.items() if isinstance(number, float)}


def _table(rows: Mapping[str, str]) -> list[str]:
    return [f"  {name:<11} {value}" for name, value in rows.items()]
