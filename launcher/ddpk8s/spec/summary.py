"""A job in one line."""

from ddpk8s.spec.job import JobSpec, TrainingJob
from ddpk8s.spec.training import Training
from ddpk8s.spec.values import amount


def summarize(job: TrainingJob) -> str:
    """Return a job in one line: name, size, and what it does."""
    return f"{job.metadata.name}, {_size(job.spec)}, {_work(job.spec)}"


def _size(spec: JobSpec) -> str:
    nodes, nproc, gpu = spec.topology.nnodes, spec.nproc_per_node, spec.resources.gpu
    device = f"{amount(gpu, 'GPUs')}{' each' * (nodes > 1)}" if gpu else "CPU"
    total = f" = {spec.world_size}" if nodes > 1 else ""
    return f"{amount(nodes, 'nodes')} x {amount(nproc, 'processes')}{total} ({device})"


def _work(spec: JobSpec) -> str:
    if spec.training is not None:
        return _training(spec.training)
    return f"script {spec.entrypoint.script}" if spec.entrypoint is not None else "nothing to run"


def _training(training: Training) -> str:
    bounds = []
    if training.num_epochs:
        bounds.append(amount(training.num_epochs, "epochs"))
    if training.max_steps:
        bounds.append(amount(training.max_steps, "steps"))
    length = " or ".join(bounds)
    return f"{training.task}, global batch {training.batch.global_batch}, {length}"
