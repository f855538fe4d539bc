"""Jobs and their objects, or what is said about a job that cannot be rendered."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddpk8s.errors import SpecError
from ddpk8s.render.manifests import Rendering
from ddpk8s.render.reading import read_source

BASE = """\
apiVersion: ddpk8s.dev/v1alpha1
kind: TrainingJob
metadata:
  name: reviews
spec:
  image: registry.example/trainer:1.0
  topology: {nnodes: 2}
  storage:
    - {name: data, mountPath: /data, persistentVolumeClaim: data}
    - {name: checkpoints, mountPath: /checkpoints, persistentVolumeClaim: checkpoints}
  training:
    model: {path: bert-base-chinese}
    data: {train: /data/train.jsonl, validation: /data/validation.jsonl}
    batch: {globalBatch: 64}
"""

GPU = ("spec.resources.gpu=8", "spec.resources.memory=64Gi")

Render = Callable[..., Rendering]
Refuse = Callable[..., str]


@pytest.fixture
def rendered(tmp_path: Path) -> Render:
    """Return a function that renders the valid job (or `text`) with `--set` values put in."""

    def run(*sets: str, text: str = BASE, run_id: str | None = "run-1") -> Rendering:
        file = tmp_path / "job.yaml"
        file.write_text(text, encoding="utf-8")
        return read_source(file, sets).render(run_id)

    return run


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Return a function that renders a job that cannot be, and returns what is printed."""
    monkeypatch.chdir(tmp_path)

    def run(*sets: str, text: str = BASE) -> str:
        Path("job.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(SpecError) as failure:
            read_source("job.yaml", sets).render()
        return str(failure.value)

    return run


def find(rendering: Rendering, kind: str) -> Any:
    """Return the only object of a kind."""
    (found,) = [each for each in rendering.objects if each["kind"] == kind]
    return found


def pods(rendering: Rendering) -> list[Any]:
    """Return the pod templates, that of node rank 0 first."""
    job = rendering.objects[-1]
    if job["kind"] == "Job":
        return [job["spec"]["template"]]
    return [role["template"] for role in job["spec"]["pytorchReplicaSpecs"].values()]


def container(rendering: Rendering) -> Any:
    """Return our container in the pod of node rank 0."""
    (found,) = [each for each in pods(rendering)[0]["spec"]["containers"] if each["name"] == "pytorch"]
    return found


def environment(rendering: Rendering) -> dict[str, Any]:
    """Return the environment of our container: values, or where they come from."""
    env = container(rendering)["env"]
    assert len({variable["name"] for variable in env}) == len(env)
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in env}
