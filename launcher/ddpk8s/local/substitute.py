"""What stands here in place of a cluster: volumes, processes, GPUs, secrets. Pure; every change is told."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ddpk8s.local.machine import Machine
from ddpk8s.local.volumes import Volumes
from ddpk8s.render.agent_plan import read_paths, written_paths
from ddpk8s.spec.base import Section
from ddpk8s.spec.data import Batch
from ddpk8s.spec.entrypoint import Entrypoint
from ddpk8s.spec.job import JobSpec, TrainingJob
from ddpk8s.spec.training import Checkpoint, Training
from ddpk8s.spec.values import amount

S = TypeVar("S", bound=Section)
CHECKPOINTS = "checkpoints"
"""Volume of checkpoints of a job that has none for them."""


@dataclass(frozen=True)
class Substitution:
    """A job as it runs here.

    Attributes:
        job: The job with every path, process count and batch as it is here.
        lines: What was changed, one line each.
        hints: What to do about a path that cannot be used, by field.
    """

    job: TrainingJob
    lines: tuple[str, ...]
    hints: Mapping[str, str]


@dataclass(frozen=True)
class Wish:
    """What the user asks for on the command line.

    Attributes:
        nnodes: Nodes.
        nproc: Processes of each node; None takes as many as the job wants and the machine has for each.
    """

    nnodes: int = 1
    nproc: int | None = None


def substitute(
    job: TrainingJob, machine: Machine, volumes: Volumes, wish: Wish, environment: Mapping[str, str]
) -> Substitution:
    """Return the job as it runs on this machine.

    Args:
        job: The job as written.
        machine: What is here.
        volumes: Directories that stand for its volumes.
        wish: Nodes and processes that the user asks for.
        environment: Where secrets are looked for, by the name of their variable.
    """
    spec = job.spec
    gpus = min(spec.resources.gpu, machine.gpus // wish.nnodes)
    processes = wish.nproc or min(spec.nproc_per_node, gpus or max(1, machine.cores // wish.nnodes))
    local_spec = _update(
        spec,
        topology=_update(spec.topology, nnodes=wish.nnodes, nproc_per_node=processes),
        resources=_update(spec.resources, gpu=gpus),
        env={name: volumes.map(value) for name, value in spec.env.items()},
        training=spec.training and _training(spec.training, volumes, wish.nnodes * processes),
        entrypoint=spec.entrypoint and _entrypoint(spec.entrypoint, volumes),
    )
    local = _update(job, spec=local_spec)
    lines = (
        *_volume_lines(job, volumes),
        *_topology_lines(job, local, machine),
        *_batch_lines(job, local),
        *_secret_lines(job, environment),
    )
    return Substitution(local, lines, _hints(job, volumes))


def _update(section: S, **changes: object) -> S:
    return section.model_copy(update=changes)


def _entrypoint(entrypoint: Entrypoint, volumes: Volumes) -> Entrypoint:
    args = [volumes.map_argument(argument) for argument in entrypoint.args]
    return _update(entrypoint, script=volumes.map(entrypoint.script), args=args)


def _training(training: Training, volumes: Volumes, processes: int) -> Training:
    data, model, checkpoint = training.data, training.model, training.checkpoint
    return _update(
        training,
        data=_update(
            data,
            train=volumes.map(data.train),
            validation=data.validation and volumes.map(data.validation),
            cache_directory=data.cache_directory and volumes.map(data.cache_directory),
        ),
        model=_update(
            model,
            path=model.path and volumes.map(model.path),
            tokenizer=model.tokenizer and volumes.map(model.tokenizer),
        ),
        checkpoint=_update(
            checkpoint,
            directory=str(volumes.directory(CHECKPOINTS))
            if _homeless(checkpoint, volumes)
            else volumes.map(checkpoint.directory),
        ),
        batch=_batch(training.batch, processes),
    )


def _homeless(checkpoint: Checkpoint, volumes: Volumes) -> bool:
    """Return whether checkpoints go where nobody said, and no volume is mounted."""
    return checkpoint.directory == Checkpoint().directory and volumes.of(checkpoint.directory) is None


def _batch(batch: Batch, processes: int) -> Batch:
    """Return the batch for so many processes: the global batch stays, accumulation follows."""
    steps = batch.gradient_accumulation_steps
    if batch.mode != "fixed" or steps is None:
        return batch
    share = steps * processes
    needed = batch.micro_batch * share if batch.micro_batch else batch.global_batch // share * share
    return batch if batch.global_batch == needed else _update(batch, gradient_accumulation_steps=None)


def _volume_lines(job: TrainingJob, volumes: Volumes) -> Iterator[str]:
    for volume in job.spec.storage:
        yield f"spec.storage[{volume.name}]: {volume.mount_path} -> {volumes.shown(volume.name)}"
    if job.spec.training and _homeless(job.spec.training.checkpoint, volumes):
        directory = job.spec.training.checkpoint.directory
        yield f"spec.training.checkpoint.directory: {directory} -> {volumes.shown(CHECKPOINTS)}"


def _topology_lines(job: TrainingJob, local: TrainingJob, machine: Machine) -> Iterator[str]:
    asked, here = _shape(job.spec), _shape(local.spec)
    if asked == here:
        return
    have = amount(machine.gpus, "GPUs") if here.gpus else amount(machine.cores, "cores")
    if asked.gpus and not here.gpus:
        have += f", {amount(machine.gpus, 'GPUs')}" if machine.gpus else ", no GPU"
    yield f"spec.topology: {asked} -> {here} ({have} here)"


class _Shape(NamedTuple):
    nodes: int
    processes: int
    gpus: int

    def __str__(self) -> str:
        return f"{amount(self.nodes, 'nodes')} x {self.processes}"


def _shape(spec: JobSpec) -> _Shape:
    return _Shape(spec.topology.nnodes, spec.nproc_per_node, spec.resources.gpu)


def _batch_lines(job: TrainingJob, local: TrainingJob) -> Iterator[str]:
    if job.spec.training and local.spec.training and job.spec.training.batch != local.spec.training.batch:
        batch = job.spec.training.batch
        need = (
            f"what globalBatch {batch.global_batch} needs with {amount(local.spec.world_size, 'processes')}"
        )
        steps = batch.gradient_accumulation_steps
        yield f"spec.training.batch.gradientAccumulationSteps: {steps} -> {need}"


def _secret_lines(job: TrainingJob, environment: Mapping[str, str]) -> Iterator[str]:
    for secret in job.spec.secrets:
        found = "as in your environment" if environment.get(secret.env) else "not set in your environment"
        yield f"spec.secrets[{secret.name}]: {secret.env} is {found}"


def _expected(job: TrainingJob, name: str, path: str, mount_path: str) -> str:
    """Return what the user is to put where the data are looked for; empty for other fields."""
    training = job.spec.training
    if training is None or not name.startswith("spec.training.data.") or name.endswith("cacheDirectory"):
        return ""
    data, below = training.data, posixpath.relpath(posixpath.normpath(path), mount_path)
    named = {".csv": "csv", ".parquet": "parquet"}.get(posixpath.splitext(path)[1], "jsonl")
    kind = named if data.format == "auto" else data.format
    columns = [column for column in (data.text_column, data.text_pair_column, data.label_column) if column]
    if kind == "jsonl":
        fields = ", ".join(f'"{column}": ...' for column in columns)
        return f"; put {below} there: one JSON object a line, {{{fields}}}"
    return f"; put {below} there: {kind} with the columns {', '.join(columns)}"


def _hints(job: TrainingJob, volumes: Volumes) -> dict[str, str]:
    hints = {}
    for name, path in {**read_paths(job), **written_paths(job)}.items():
        volume = volumes.of(path)
        if volume:
            here = (
                f"{volumes.shown(volume.name)} stands for {volume.mount_path} (spec.storage[{volume.name}])"
            )
            hints[name] = f"{here} on this machine" + _expected(job, name, path, volume.mount_path)
        else:
            hints[name] = "no volume of spec.storage holds it, so it is taken as it stands"
    return hints
