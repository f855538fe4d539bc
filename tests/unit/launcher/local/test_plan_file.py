"""The two JSON files that a job becomes: what is in them, and that their readers understand it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.launcher.local.harness import BELOW, HERE, job, local

from ddpk8s.render.agent_plan import Place, agent_plan, training_file
from ddpk8s_agent.plan import load_plan


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
    written = local(
        entrypoint={"script": "t.py", "args": ["1"]}, failurePolicy={"gracePeriod": "90s", "maxRestarts": 7}
    )
    document = agent_plan(written.job, "id", Place("/t", str(tmp_path), "/w", working_directory="/code"))
    (tmp_path / "plan.json").write_text(json.dumps(document))
    plan = load_plan(tmp_path / "plan.json")
    assert (plan.command.script, plan.command.working_directory) == ("t.py", "/code")
    assert (plan.max_restarts, plan.grace_period_seconds) == (7, 90)
    assert plan.checks.shared_memory_bytes == 8 << 30


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({}, 1200),
        ({"failurePolicy": {"hangTimeout": "90s"}}, 90),
        ({"entrypoint": {"script": "t.py"}}, None),
        ({"entrypoint": {"script": "t.py"}, "failurePolicy": {"progressRegex": r"s (?P<step>\d+)"}}, 1200),
        ({"entrypoint": {"script": "t.py"}, "failurePolicy": {"hangTimeout": "90s"}}, 90),
    ],
)
def test_silence_is_a_failure_only_where_progress_can_be_seen(
    spec: dict[str, Any], seconds: float | None
) -> None:
    plan = agent_plan(job(**spec), "id", Place("/t", "/s", "/w"))
    assert plan["hangTimeoutSeconds"] == seconds


def test_the_plan_tells_agents_where_they_meet_and_how_long_they_wait() -> None:
    written = job(topology={"nnodes": 3, "nprocPerNode": 2}, failurePolicy={"startDeadline": "10m"})
    place = Place("/t", "/s", "/w", master_address="10.0.0.7", gang_port=29400, launch_id="l")
    plan = agent_plan(written, "id", place)
    told = (
        "nnodes",
        "nprocPerNode",
        "masterAddr",
        "masterPort",
        "gangPort",
        "launchId",
        "startDeadlineSeconds",
    )
    assert [plan[name] for name in told] == [3, 2, "10.0.0.7", None, 29400, "l", 600]
    alone = agent_plan(job(), "id", Place("/t", "/s", "/w"))
    assert (alone["masterAddr"], alone["gangPort"], alone["launchId"]) == ("127.0.0.1", None, "")
