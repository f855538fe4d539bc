"""From a job to the two JSON files that pods and laptop share: the agent's plan, the trainer's configuration.

Every node has the same plan but for the agent's own files; its rank it learns from its environment.
Pure: whoever calls has put the paths as the processes will see them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any

from ddpk8s.spec.failure import SHUTDOWN_MARGIN
from ddpk8s.spec.job import TrainingJob

PLAN_SCHEMA = 1
TRAINER_MODULE = "ddpk8s_trainer"
HANG_TIMEOUT = timedelta(minutes=20)
"""Time without progress that is a failure, where progress can be seen and the job says nothing."""
HINT = "a volume of spec.storage must hold it, or the image"


@dataclass(frozen=True)
class Place:
    """Where the agent finds and leaves things, and the other agents.

    Attributes:
        training_file: The trainer's configuration.
        state_directory: The agent's own files.
        termination_file: Where its last word goes.
        working_directory: Where a script of the user runs, or None.
        shared_memory: Whether /dev/shm has the size the job asks for, which a laptop need not grant.
        hints: What to do about a path that cannot be used, by field; `HINT` for those that are not in it.
        master_address: Where the other nodes find node rank 0.
        gang_port: TCP port on which its agent listens for theirs; None with one node.
        launch_id: Names this start of the run; a new one has all its restarts before it.
    """

    training_file: str
    state_directory: str
    termination_file: str
    working_directory: str | None = None
    shared_memory: bool = True
    hints: Mapping[str, str] = field(default_factory=dict)
    master_address: str = "127.0.0.1"
    gang_port: int | None = None
    launch_id: str = ""


def training_file(job: TrainingJob, run_id: str) -> dict[str, Any] | None:
    """Return the content of the trainer's configuration file; None with a script of the user."""
    if job.spec.training is None:
        return None
    return {"job": job.metadata.name, "runId": run_id, "training": job.spec.training.to_document()}


def agent_plan(job: TrainingJob, run_id: str, place: Place) -> dict[str, Any]:
    """Return the content of the agent's plan."""
    spec, policy = job.spec, job.spec.failure_policy
    checkpoints = job_directory(job)
    return {
        "schema": PLAN_SCHEMA,
        "job": job.metadata.name,
        "runId": run_id,
        "nnodes": spec.topology.nnodes,
        "nprocPerNode": spec.nproc_per_node,
        "masterAddr": place.master_address,
        "masterPort": spec.topology.master_port,
        "gangPort": place.gang_port,
        "launchId": place.launch_id,
        "command": _command(job, place),
        "env": dict(spec.env),
        "maxRestarts": policy.max_restarts,
        "gracePeriodSeconds": max(policy.grace_period, SHUTDOWN_MARGIN).total_seconds(),
        "startDeadlineSeconds": policy.start_deadline.total_seconds(),
        "hangTimeoutSeconds": hang_timeout(job),
        "checks": {
            "sharedMemoryBytes": spec.resources.shared_memory_bytes if place.shared_memory else None,
            "gpus": spec.resources.gpu,
            "readable": [_check(path, name, place) for name, path in read_paths(job).items()],
            "writable": [_check(path, name, place) for name, path in written_paths(job).items()],
        },
        "checkpointDirectory": None if checkpoints is None else str(checkpoints),
        "progressRegex": policy.progress_regex,
        "terminationMessagePath": place.termination_file,
        "stateDirectory": place.state_directory,
    }


def hang_timeout(job: TrainingJob) -> float | None:
    """Return the seconds without progress that are a failure; None where silence means nothing."""
    policy = job.spec.failure_policy
    if policy.hang_timeout is not None:
        return policy.hang_timeout.total_seconds()
    is_seen = job.spec.training is not None or policy.progress_regex is not None
    return HANG_TIMEOUT.total_seconds() if is_seen else None


def job_directory(job: TrainingJob) -> PurePosixPath | None:
    """Return the directory of all that this job leaves behind; None with a script of the user."""
    training = job.spec.training
    return PurePosixPath(training.checkpoint.directory) / job.metadata.name if training else None


def read_paths(job: TrainingJob) -> dict[str, str]:
    """Return the paths that the trainer reads, by field. Names on the hub are no paths."""
    training = job.spec.training
    if training is None:
        return {}
    prefix = "spec.training."
    paths = {f"{prefix}data.train": training.data.train, f"{prefix}data.validation": training.data.validation}
    for name, text in (("model.path", training.model.path), ("model.tokenizer", training.model.tokenizer)):
        paths[prefix + name] = text if text and text.startswith(("/", "./", "../")) else None
    return {name: path for name, path in paths.items() if path}


def written_paths(job: TrainingJob) -> dict[str, str]:
    """Return the directories that the trainer writes, by field."""
    training = job.spec.training
    if training is None:
        return {}
    paths = {
        "spec.training.checkpoint.directory": training.checkpoint.directory,
        "spec.training.data.cacheDirectory": training.data.cache_directory,
    }
    return {name: path for name, path in paths.items() if path}


def _command(job: TrainingJob, place: Place) -> dict[str, Any]:
    entrypoint = job.spec.entrypoint
    if entrypoint is None:
        return {"module": TRAINER_MODULE, "args": ["--config", place.training_file]}
    return {
        "script": entrypoint.script,
        "args": list(entrypoint.args),
        "workingDirectory": place.working_directory,
    }


def _check(path: str, name: str, place: Place) -> dict[str, str]:
    return {"path": path, "field": name, "hint": place.hints.get(name, HINT)}
