"""Restarts and time limits against each other and against the backend."""

import re
from collections.abc import Iterator
from datetime import timedelta

from ddpk8s.spec.failure import PROGRESS_GROUPS, SHUTDOWN_MARGIN, FailurePolicy
from ddpk8s.spec.job import JobSpec, TrainingJob
from ddpk8s.spec.problems import Problem, error, warning
from ddpk8s.spec.values import format_duration

_SHORT_GRACE = timedelta(seconds=15)
_AT_LEAST = timedelta(seconds=1)


def check_failure_policy(job: TrainingJob) -> Iterator[Problem]:
    """Yield problems of `failurePolicy`."""
    policy = job.spec.failure_policy
    yield from _check_grace(job.spec, policy)
    for name, value in (("startDeadline", policy.start_deadline), ("hangTimeout", policy.hang_timeout)):
        if value is not None and value < _AT_LEAST:
            yield error(f"spec.failurePolicy.{name}", f"is {format_duration(value)}, but must be at least 1s")
    deadline = policy.active_deadline
    if deadline is not None and deadline <= policy.grace_period:
        hint = "raise activeDeadline; a job that is ended gets gracePeriod to save"
        yield error(
            "spec.failurePolicy.activeDeadline",
            f"is {format_duration(deadline)}, not more than spec.failurePolicy.gracePeriod, "
            f"which is {format_duration(policy.grace_period)}",
            hint,
            ["spec.failurePolicy.gracePeriod"],
        )
    yield from _check_regex(job.spec, policy)
    yield from _check_pytorch_job(job.spec)


def _check_grace(spec: JobSpec, policy: FailurePolicy) -> Iterator[Problem]:
    field, grace = "spec.failurePolicy.gracePeriod", policy.grace_period
    if grace <= SHUTDOWN_MARGIN:
        hint = "set it to the time a checkpoint takes and 5s more, 30s at least for all but tiny models"
        yield error(
            field,
            f"is {format_duration(grace)}, but the last 5s are the launcher's own: no time is left to save",
            hint,
        )
    elif grace < _SHORT_GRACE and spec.training is not None:
        left = format_duration(grace - SHUTDOWN_MARGIN)
        hint = "set it to the time a checkpoint takes and 5s more"
        yield warning(field, f"is {format_duration(grace)}, which leaves {left} to save a checkpoint", hint)


def _check_regex(spec: JobSpec, policy: FailurePolicy) -> Iterator[Problem]:
    field, pattern = "spec.failurePolicy.progressRegex", policy.progress_regex
    if pattern is None:
        return
    if spec.training is not None:
        hint = "remove it; it is for scripts of your own"
        yield error(
            field, "is set but the bundled trainer reports its progress itself", hint, ["spec.training"]
        )
    try:
        groups = re.compile(pattern).groupindex
    except (re.error, OverflowError, RecursionError) as failure:
        yield error(field, f"is no Python regular expression: {failure}")
        return
    known = ", ".join(PROGRESS_GROUPS)
    if "step" not in groups:
        hint = r"write for example step (?P<step>\d+)"
        yield error(field, "has no group named `step`", hint)
    for name in groups:
        if name not in PROGRESS_GROUPS:
            yield error(
                field, f"has a group `{name}`, but only {known} are known", "rename it, or use (?:...)"
            )


def _check_pytorch_job(spec: JobSpec) -> Iterator[Problem]:
    """The operator replaces pods without any limit: something else must end a job that cannot go on."""
    if spec.backend != "PyTorchJob" or spec.failure_policy.active_deadline is not None:
        return
    volume = spec.volume_of(spec.training.checkpoint.directory) if spec.training else None
    if volume is not None and volume.outlives_pod:
        return
    where = (
        "spec.training.checkpoint.directory lies in no shared volume" if spec.training else "there is none"
    )
    yield error(
        "spec.backend",
        "is PyTorchJob, which replaces pods without limit, so it needs spec.failurePolicy.activeDeadline "
        f"or a shared checkpoint volume, and {where}",
        "set activeDeadline, keep checkpoints on a persistentVolumeClaim or nfs, or use IndexedJob",
        ["spec.failurePolicy.activeDeadline", "spec.storage", "spec.training.checkpoint.directory"],
    )
