"""Jobs to put a profile into."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.load import load_job

JOB = """\
apiVersion: ddpk8s.dev/v1alpha1
kind: TrainingJob
metadata: {name: reviews}
spec:
  image: registry.example/trainer:1.0
  topology: {nnodes: 2}
  resources: {gpu: 8, memory: 512Gi}
  storage:
    - {name: code, mountPath: /code, persistentVolumeClaim: code}
  entrypoint: {script: /code/train.py}
"""


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., TrainingJob]:
    """Return a function that makes a job of two nodes with eight GPUs each, with `--set` values put in."""

    def make(*sets: str) -> TrainingJob:
        file = tmp_path / "job.yaml"
        file.write_text(JOB, encoding="utf-8")
        return load_job(file, sets)

    return make


@pytest.fixture
def with_profile(job: Callable[..., TrainingJob]) -> Callable[..., TrainingJob]:
    """Return a function that makes a job for a profile: its GPUs, nodes and required parameters."""
    parameters = {
        "ib-shared": '{resource: "rdma/hca_shared"}',
        "roce": '{resource: "nvidia.com/vf", networks: "default/vf"}',
        "aws-efa": '{devices: "32"}',
        "oci-vf": '{devices: "16", networks: "default/rdma-vf"}',
    }
    gpus = {"cpu-gloo": 0, "gke-a4x": 4, "coreweave-roce": 4, "mnnvl": 4}

    def make(name: str, *sets: str) -> TrainingJob:
        nnodes = 1 if name == "nvlink" else 2
        return job(
            f"spec.fabric={{profile: {name}, parameters: {parameters.get(name, '{}')}}}",
            f"spec.resources.gpu={gpus.get(name, 8)}",
            f"spec.topology.nnodes={nnodes}",
            *sets,
        )

    return make
