"""What `ddpk8s run` puts in place of a cluster."""

from pathlib import Path
from typing import Any

import pytest

from ddpk8s.local.machine import Machine
from ddpk8s.local.substitute import Substitution, substitute
from ddpk8s.local.volumes import Volumes
from ddpk8s.render.agent_plan import Place, agent_plan, training_file
from ddpk8s.spec.job import TrainingJob

HERE = Path("/home/me")
BELOW = Path(".ddpk8s/volumes")
STORAGE = [
    {"name": "data", "mountPath": "/data", "persistentVolumeClaim": "d"},
    {"name": "inner", "mountPath": "/data/inner", "persistentVolumeClaim": "i"},
    {"name": "checkpoints", "mountPath": "/checkpoints", "persistentVolumeClaim": "c"},
]
TRAINING = {
    "model": {"path": "/data/inner/bert", "tokenizer": "bert-base-chinese"},
    "data": {
        "train": "/data/train.jsonl",
        "validation": "/elsewhere/v.jsonl",
        "cacheDirectory": "/checkpoints/x/../cache",
    },
}


def job(**spec: Any) -> TrainingJob:
    document = {"image": "registry.example/x:1", "storage": STORAGE} | spec
    if "entrypoint" not in document:
        document.setdefault("training", TRAINING)
    return TrainingJob.model_validate(
        {
            "apiVersion": "ddpk8s.dev/v1alpha1",
            "kind": "TrainingJob",
            "metadata": {"name": "reviews"},
            "spec": document,
        }
    )


def local(machine: Machine | None = None, nproc: int | None = None, **spec: Any) -> Substitution:
    written = job(**spec)
    volumes = Volumes(written, HERE, BELOW)
    return substitute(written, machine or Machine(2, 0), volumes, nproc, {"SET_KEY": "x"})


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


def test_the_plan_names_the_field_and_the_volume_of_every_path() -> None:
    result = local()
    plan = agent_plan(
        result.job, "id", Place("/t.json", "/state", "/word", shared_memory=False, hints=result.hints)
    )
    checks = {check["field"]: check for check in plan["checks"]["readable"] + plan["checks"]["writable"]}
    assert set(checks) == {
        "spec.training.data.train",
        "spec.training.data.validation",
        "spec.training.model.path",
        "spec.training.checkpoint.directory",
        "spec.training.data.cacheDirectory",
    }
    hint = checks["spec.training.data.train"]["hint"]
    assert hint.startswith(".ddpk8s/volumes/data stands for /data (spec.storage[data]) on this machine; put ")
    assert hint.endswith(' there: one JSON object a line, {"text": ..., "label": ...}')
    assert plan["checks"]["sharedMemoryBytes"] is None
    assert plan["command"] == {"module": "ddpk8s_trainer", "args": ["--config", "/t.json"]}
    assert plan["checkpointDirectory"] == f"{HERE}/{BELOW}/checkpoints/reviews"


def test_the_trainer_reads_its_file_as_the_section_it_was_written_from() -> None:
    result = local()
    content = training_file(result.job, "id")
    assert content is not None
    assert type(result.job.spec.training).model_validate(content["training"]) == result.job.spec.training


def test_the_agent_reads_the_plan_we_write(tmp_path: Path) -> None:
    import json

    from ddpk8s_agent.plan import load_plan

    written = local(
        entrypoint={"script": "t.py", "args": ["1"]}, failurePolicy={"gracePeriod": "90s", "maxRestarts": 7}
    )
    document = agent_plan(written.job, "id", Place("/t", str(tmp_path), "/w", working_directory="/code"))
    (tmp_path / "plan.json").write_text(json.dumps(document))
    plan = load_plan(tmp_path / "plan.json")
    assert (plan.command.script, plan.command.working_directory) == ("t.py", "/code")
    assert (plan.max_restarts, plan.grace_period_seconds) == (7, 90)
    assert plan.checks.shared_memory_bytes == 8 << 30
