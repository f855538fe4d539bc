"""What `ddpk8s run` puts in place of a cluster."""

from typing import Any

import pytest
from tests.unit.launcher.local.harness import BELOW, HERE, TRAINING, local

from ddpk8s.local.machine import Machine


def test_every_path_below_a_mount_is_mapped_and_no_other() -> None:
    training = local().job.spec.training
    assert training is not None
    volumes = f"{HERE}/{BELOW}"
    assert training.data.train == f"{volumes}/data/train.jsonl"
    assert training.model.path == f"{volumes}/inner/bert", "the innermost mount wins"
    assert training.data.cache_directory == f"{volumes}/checkpoints/cache"
    assert training.checkpoint.directory == f"{volumes}/checkpoints"
    assert training.data.validation == "/elsewhere/v.jsonl"
    assert training.model.tokenizer == "bert-base-chinese"


def test_arguments_and_environment_of_an_own_script_are_mapped() -> None:
    entrypoint = {
        "script": "/data/train.py",
        "args": ["/data/a", "--data=/data/b", "--x", "a=/data/c", "/database"],
    }
    spec = local(entrypoint=entrypoint, env={"DATA": "/data", "OTHER": "/opt/data"}).job.spec
    assert spec.entrypoint is not None
    volume = f"{HERE}/{BELOW}/data"
    assert spec.entrypoint.script == f"{volume}/train.py"
    assert spec.entrypoint.args == [f"{volume}/a", f"--data={volume}/b", "--x", "a=/data/c", "/database"]
    assert spec.env == {"DATA": volume, "OTHER": "/opt/data"}


@pytest.mark.parametrize(
    ("topology", "resources", "machine", "nproc", "processes", "line"),
    [
        ({"nprocPerNode": 2}, {}, Machine(2, 0), None, 2, None),
        ({"nprocPerNode": 2}, {}, Machine(8, 4), None, 2, None),
        (
            {"nnodes": 2, "nprocPerNode": 8},
            {},
            Machine(2, 0),
            None,
            2,
            "2 nodes x 8 -> 1 node x 2 (2 cores here)",
        ),
        ({}, {"gpu": 8}, Machine(4, 0), None, 4, "1 node x 8 -> 1 node x 4 (4 cores, no GPU here)"),
        ({"nnodes": 4}, {"gpu": 8}, Machine(64, 2), None, 2, "4 nodes x 8 -> 1 node x 2 (2 GPUs here)"),
        ({"nprocPerNode": 2}, {}, Machine(2, 0), 3, 3, "1 node x 2 -> 1 node x 3 (2 cores here)"),
        ({}, {}, Machine(2, 0), None, 1, None),
    ],
)
def test_processes_are_what_job_and_machine_have(
    topology: Any, resources: Any, machine: Machine, nproc: int | None, processes: int, line: str | None
) -> None:
    result = local(machine, nproc, topology=topology, resources=resources)
    assert (result.job.spec.topology.nnodes, result.job.spec.nproc_per_node) == (1, processes)
    told = [text for text in result.lines if text.startswith("spec.topology")]
    assert told == ([f"spec.topology: {line}"] if line else [])


@pytest.mark.parametrize(
    ("topology", "resources", "machine", "wish", "shape", "line"),
    [
        ({"nprocPerNode": 2}, {}, Machine(8, 0), (2, None), (2, 2, 0), "1 node x 2 -> 2 nodes x 2 (8 cores here)"),
        ({"nprocPerNode": 2}, {}, Machine(2, 0), (2, None), (2, 1, 0), "1 node x 2 -> 2 nodes x 1 (2 cores here)"),
        ({"nprocPerNode": 2}, {}, Machine(2, 0), (2, 2), (2, 2, 0), "1 node x 2 -> 2 nodes x 2 (2 cores here)"),
        ({"nnodes": 2, "nprocPerNode": 2}, {}, Machine(4, 0), (2, None), (2, 2, 0), None),
        ({"nnodes": 8}, {}, Machine(1, 0), (4, None), (4, 1, 0), "8 nodes x 1 -> 4 nodes x 1 (1 core here)"),
        ({}, {"gpu": 8}, Machine(64, 8), (2, None), (2, 4, 4), "1 node x 8 -> 2 nodes x 4 (8 GPUs here)"),
        ({}, {"gpu": 1}, Machine(8, 1), (2, None), (2, 1, 0), "1 node x 1 -> 2 nodes x 1 (8 cores, 1 GPU here)"),
    ],
)  # fmt: skip
def test_nodes_share_the_machine(
    topology: Any,
    resources: Any,
    machine: Machine,
    wish: tuple[int, int | None],
    shape: tuple[int, int, int],
    line: str | None,
) -> None:
    nnodes, nproc = wish
    result = local(machine, nproc, nnodes, topology=topology, resources=resources)
    spec = result.job.spec
    assert (spec.topology.nnodes, spec.nproc_per_node, spec.resources.gpu) == shape
    told = [text for text in result.lines if text.startswith("spec.topology")]
    assert told == ([f"spec.topology: {line}"] if line else [])


@pytest.mark.parametrize(
    ("batch", "steps"),
    [
        ({"mode": "fixed", "globalBatch": 64, "microBatch": 4, "gradientAccumulationSteps": 8}, 8),
        ({"mode": "fixed", "globalBatch": 64, "microBatch": 4, "gradientAccumulationSteps": 2}, None),
        ({"mode": "fixed", "globalBatch": 64, "gradientAccumulationSteps": 8}, 8),
        ({"mode": "fixed", "globalBatch": 66, "gradientAccumulationSteps": 2}, None),
        ({"mode": "tokenBudget", "globalBatch": 64}, None),
    ],
)
def test_the_global_batch_is_kept_and_accumulation_follows(batch: dict[str, Any], steps: int | None) -> None:
    result = local(topology={"nprocPerNode": 8}, training=TRAINING | {"batch": batch})
    assert result.job.spec.training is not None
    assert result.job.spec.training.batch.global_batch == batch["globalBatch"]
    assert result.job.spec.training.batch.gradient_accumulation_steps == steps
    told = any("gradientAccumulationSteps" in line for line in result.lines)
    assert told == (batch.get("gradientAccumulationSteps") != steps)


def test_accumulation_follows_the_processes_of_all_nodes() -> None:
    batch = {"mode": "fixed", "globalBatch": 64, "microBatch": 4, "gradientAccumulationSteps": 8}
    settings: dict[str, Any] = {"topology": {"nprocPerNode": 2}, "training": TRAINING | {"batch": batch}}
    lines = local(Machine(4, 0), nnodes=2, **settings).lines
    need = "what globalBatch 64 needs with 4 processes"
    assert f"spec.training.batch.gradientAccumulationSteps: 8 -> {need}" in lines


def test_secrets_come_from_the_environment_and_their_values_are_never_shown() -> None:
    secrets = [{"name": "a", "key": "k", "env": "SET_KEY"}, {"name": "b", "key": "k", "env": "NOT_SET_KEY"}]
    lines = local(secrets=secrets).lines
    assert "spec.secrets[a]: SET_KEY is as in your environment" in lines
    assert "spec.secrets[b]: NOT_SET_KEY is not set in your environment" in lines


def test_checkpoints_without_a_volume_get_one() -> None:
    result = local(storage=[])
    assert result.job.spec.training is not None
    assert result.job.spec.training.checkpoint.directory == f"{HERE}/{BELOW}/checkpoints"
    assert "spec.training.checkpoint.directory: /checkpoints -> .ddpk8s/volumes/checkpoints" in result.lines
