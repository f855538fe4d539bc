"""What must hold between fields. One module for each concern; each check names all fields it compares."""

from collections.abc import Iterator

from ddpk8s.spec.checks.batch import check_batch
from ddpk8s.spec.checks.code import check_entrypoint, check_files
from ddpk8s.spec.checks.environment import check_environment
from ddpk8s.spec.checks.fabric import check_fabric
from ddpk8s.spec.checks.failure import check_failure_policy
from ddpk8s.spec.checks.model import check_model
from ddpk8s.spec.checks.pod_template import check_pod_template
from ddpk8s.spec.checks.resources import check_resources
from ddpk8s.spec.checks.sizes import check_sizes
from ddpk8s.spec.checks.steps import check_steps
from ddpk8s.spec.checks.storage import check_storage
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.problems import Problem, error
from ddpk8s.spec.training import Training

__all__ = ["check_files", "check_job", "check_training"]


def check_job(job: TrainingJob) -> Iterator[Problem]:
    """Yield every problem between the fields of a job, errors and warnings."""
    yield from check_resources(job.spec)
    yield from check_environment(job)
    yield from check_sizes(job)
    yield from check_fabric(job)
    yield from check_storage(job.spec)
    yield from check_failure_policy(job)
    yield from check_pod_template(job.spec)
    if job.spec.training is not None and job.spec.entrypoint is not None:
        hint = "keep `training` for the bundled trainer, or `entrypoint` for your own script"
        yield error(
            "spec.entrypoint",
            "and spec.training are both given, but exclude each other",
            hint,
            ["spec.training"],
        )
    elif job.spec.training is not None:
        yield from check_training(job.spec.training, job.spec.world_size)
    elif job.spec.entrypoint is not None:
        yield from check_entrypoint(job.spec)
    else:
        hint = "add `training:` for the bundled trainer, or `entrypoint:` for your own script"
        yield error("spec", "has neither `training` nor `entrypoint`, so there is nothing to run", hint, [
            "spec.training", "spec.entrypoint",
        ])  # fmt: skip


def check_training(training: Training, world_size: int) -> Iterator[Problem]:
    """Yield every problem of the bundled trainer's section for so many processes."""
    yield from check_batch(training, world_size)
    yield from check_model(training)
    yield from check_steps(training)
