"""Which profile a job gets, how much is read for it, and what a node is made for."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from ddpk8s.errors import SpecError
from ddpk8s.fabric import select
from ddpk8s.fabric.detect import detect
from ddpk8s.spec.job import TrainingJob

Job = Callable[..., TrainingJob]
GPU = {"nvidia.com/gpu": "8"}


@pytest.mark.parametrize(
    ("gpu", "nnodes", "name"),
    [(0, 1, "cpu-gloo"), (0, 2, "cpu-gloo"), (1, 1, "tcp"), (8, 1, "nvlink"), (1, 2, "tcp"), (8, 2, "tcp")],
)
def test_profile_follows_gpus_and_nodes_when_none_is_named(
    job: Job, gpu: int, nnodes: int, name: str
) -> None:
    assert select(job(f"spec.resources.gpu={gpu}", f"spec.topology.nnodes={nnodes}")).name == name


def test_named_profile_wins(job: Job) -> None:
    assert select(job("spec.fabric.profile=ib-sriov")).name == "ib-sriov"


def test_profile_that_is_not_there_is_refused(job: Job) -> None:
    with pytest.raises(SpecError, match=r"spec.fabric.profile is 'tcp', which is no profile"):
        select(job("spec.fabric.profile=tcp"), {})


def test_only_the_profile_in_use_is_read_and_nothing_heavy_is_loaded() -> None:
    code = (
        "import json, sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "from ddpk8s.fabric import load_profiles\n"
        "load_profiles()['tcp']\n"
        "heavy = [name for name in ('torch', 'jinja2', 'kubernetes', 'rich') if name in sys.modules]\n"
        "print(json.dumps([[path for path in opened if '/profiles/' in path], heavy]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    opened, heavy = json.loads(done.stdout)
    assert [path.rpartition("/")[2] for path in opened] == ["tcp.yaml"]
    assert heavy == []


@pytest.mark.parametrize(
    ("labels", "allocatable", "first"),
    [
        ({}, {"cpu": "2"}, "cpu-gloo"),
        ({}, GPU, "tcp"),
        ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "8"}, GPU, "nvlink"),
        ({"feature.node.kubernetes.io/pci-15b3.present": "true"}, {**GPU, "rdma/hca_shared": "63"}, "ib-shared"),
        ({}, {**GPU, "rdma/ib": "8"}, "ib-sriov"),
        ({"node.coreweave.cloud/type": "gd-8xh100ib-i128"}, {**GPU, "rdma/ib": "1"}, "coreweave-ib"),
        ({"node.coreweave.cloud/type": "gb300-4x"}, {**GPU, "rdma/ib": "1"}, "coreweave-roce"),
        ({"node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5"}, {**GPU, "rdma/ib": "8"}, "aks-nd"),
        ({}, {**GPU, "vpc.amazonaws.com/efa": "32"}, "aws-efa"),
        ({}, {**GPU, "vpc.amazonaws.com/efa": "0"}, "tcp"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, GPU, "gke-tcpx"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, GPU, "gke-tcpxo"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h200-141gb"}, GPU, "gke-rdma"),
        ({"cloud.google.com/gke-accelerator": "nvidia-gb200", "nvidia.com/gpu.clique": "a.1"}, GPU, "gke-a4x"),
        ({"nvidia.com/gpu.clique": "a.1"}, GPU, "mnnvl"),
        ({"node.kubernetes.io/instance-type": "BM.GPU.H100.8"}, GPU, "oci-hostnet"),
        ({"node.kubernetes.io/instance-type": "BM.GPU.H100.8"}, {**GPU, "nvidia.com/rdma-vf": "16"}, "oci-vf"),
        ({}, {**GPU, "rdma/hca": "1k"}, "ack-lingjun"),
    ],
)  # fmt: skip
def test_node_tells_its_profile(labels: dict[str, str], allocatable: dict[str, str], first: str) -> None:
    assert detect(labels, allocatable)[0] == first
