"""Whether a run is continued: what did not finish goes on, unless the training is another one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddpk8s.errors import DdpError, SpecError
from ddpk8s.spec.job import TrainingJob

_SECTIONS = ("training", "entrypoint")
_HARMLESS = frozenset(
    f"spec.training.{name}"
    for name in (
        *("checkpoint", "metrics", "output", "resume", "data.cacheDirectory", "evaluation", "nonFinite"),
        *("epochs", "maxSteps"),
    )
)
"""What may change while a training goes on: the steps to come are computed as before. The trainer tells it."""


@dataclass(frozen=True)
class Identity:
    """Which run this is.

    Attributes:
        run_id: Its id; checkpoints belong to it.
        continued: Whether it began earlier.
        lines: What the user should know of the choice.
    """

    run_id: str
    continued: bool
    lines: tuple[str, ...] = ()


def newest_with_steps(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the record of the newest run that came to anything.

    A run that ended by itself before its first step (a typing error in the job, say) is passed over, so that
    correcting it leads back to the run before.
    """
    before = record.get("before")
    ended_early = not record.get("step") and record.get("state") not in ("running", "finished")
    return before if before and ended_early else record


def learned(job: TrainingJob) -> dict[str, Any]:
    """Return what must be equal for two runs to be one training: `training` or `entrypoint`, as written."""
    spec = job.spec.to_document()
    return {name: spec[name] for name in _SECTIONS}


def choose_run(
    record: Mapping[str, Any], job: TrainingJob, new_id: str, *, fresh: bool = False, resume: bool = False
) -> Identity:
    """Return which run this is.

    Args:
        record: What the run directory says of the run before; empty if there was none.
        job: The job as written.
        new_id: Id of a new run.
        fresh: The user wants a new run whatever was before.
        resume: The user wants the run before to go on whatever changed.

    Raises:
        DdpError: `resume`, but nothing was before.
        SpecError: the run before learned something, and the job is another one since: the user must choose.
    """
    run_id = record.get("runId")
    if not run_id:
        if resume:
            raise DdpError(f"--resume: no run of {job.metadata.name} was started in this directory")
        return Identity(new_id, continued=False)
    if resume:
        return Identity(run_id, continued=True, lines=(f"continuing run {run_id}, as asked",))
    if fresh:
        return Identity(new_id, continued=False, lines=(f"new run {new_id}, as asked",))
    if record.get("state") == "finished":
        return Identity(new_id, continued=False, lines=(_after_finished(record, job, new_id),))
    changes = differences(record.get("learned") or {}, learned(job))
    if not changes:
        return Identity(run_id, continued=True, lines=(f"continuing run {run_id}, which {_how(record)}",))
    if record.get("step"):
        raise _must_choose(record, job, changes)
    if record.get("state") != "running":
        return Identity(new_id, continued=False)  # it ended by itself with nothing learned
    lines = (f"run {run_id} {_how(record)}, and the job has changed since: this is a new run, {new_id}",)
    return Identity(new_id, continued=False, lines=lines)


def _must_choose(record: Mapping[str, Any], job: TrainingJob, changes: list[str]) -> SpecError:
    run_id, step = record["runId"], record["step"]
    moved = " (checkpoints of the old run are moved to archive/, never deleted)" if job.spec.training else ""
    return SpecError(
        "\n".join(
            (
                f"run {run_id} {_how(record)}, but the job has changed since:",
                *(f"  {change}" for change in changes),
            )
        ),
        f"`--resume` goes on with run {run_id} from step {step} with the settings as they are now, "
        f"`--fresh` starts anew{moved}",
    )


def _after_finished(record: Mapping[str, Any], job: TrainingJob, new_id: str) -> str:
    run_id = record["runId"]
    at = f" at step {record['step']}" if record.get("step") else ""
    moved = f"; its model, report, metrics and checkpoints are moved to archive/{run_id}/"
    return f"run {run_id} finished{at}: this is a new run, {new_id}" + (moved if job.spec.training else "")


def differences(old: Any, new: Any, path: str = "spec") -> list[str]:
    """Return what differs between two documents, a line each: `spec.training.seed: 3 -> 4`.

    What may change while a training goes on is left out.
    """
    if old == new or path in _HARMLESS:
        return []
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        return [line for key in keys for line in differences(old.get(key), new.get(key), f"{path}.{key}")]
    return [f"{path}: {_show(old)} -> {_show(new)}"]


def _show(value: Any) -> str:
    if value is None:
        return "absent"
    return "{...}" if isinstance(value, Mapping) else str(value)


def _how(record: Mapping[str, Any]) -> str:
    step = f" at step {record['step']}" if record.get("step") else ""
    ends = {"stopped": "was stopped", "failed": "failed", "mistake": "ended by a mistake"}
    return ends.get(str(record.get("state")), "was killed") + step
