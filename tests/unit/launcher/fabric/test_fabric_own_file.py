"""A profile of the user's own, from a file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ddpk8s.errors import SpecError
from ddpk8s.fabric import additions, load_profiles, select
from ddpk8s.fabric.load import MAX_BYTES
from ddpk8s.spec.job import TrainingJob

Job = Callable[..., TrainingJob]
OWN = """\
apiVersion: ddpk8s.dev/v1alpha1
kind: FabricProfile
name: lab
description: the lab's InfiniBand
rdma: true
parameters:
  rail: {description: Rail of the cards., default: a}
env:
  NCCL_NET: {value: IB, source: lab-wiki, when: multiNode}
  NCCL_IB_HCA: {value: "=mlx5_${rail}", source: lab-wiki, why: one rail}
resources:
  rdma/lab: {value: "1", source: https://wiki.example/gpu}
sources:
  lab-wiki: https://wiki.example/network
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "fabric.yaml"
    path.write_text(OWN, encoding="utf-8")
    return path


def test_own_profile_is_used_when_the_job_names_its_file(file: Path, job: Job) -> None:
    one = job(f"spec.fabric={{profileFile: {file}, parameters: {{rail: b}}}}")
    profiles = load_profiles(file)
    assert "lab" in profiles
    assert "tcp" in profiles
    found = additions(select(one, profiles), one)
    assert found.env["NCCL_IB_HCA"].value == "=mlx5_b"
    assert found.env["NCCL_IB_HCA"].source == "https://wiki.example/network"
    assert found.resources == {"rdma/lab": "1"}
    assert not any("untested" in note for note in found.notes)
    assert select(one) == select(one, profiles)


def test_mistakes_name_the_field_that_chose_the_profile(file: Path, job: Job) -> None:
    one = job(f"spec.fabric={{profileFile: {file}}}", "spec.resources.gpu=0")
    with pytest.raises(SpecError) as failure:
        additions(select(one), one)
    assert "spec.fabric.profileFile has the profile 'lab', which connects GPUs, but" in str(failure.value)


@pytest.mark.parametrize(
    ("old", "new", "printed"),
    [
        ("name: lab", "name: tcp", "name is 'tcp', which is a profile of the launcher\n"
            "  hint: call it for example my-tcp"),
        ("rdma: true", "rdmaa: true", "fabric.yaml:5:1: rdmaa is not a known field\n  hint: did you mean `rdma`?"),
        ("name: lab", "name: La b", "fabric.yaml:3:1: name is 'La b', but must be lower-case letters"),
        ("  NCCL_NET: {value: IB, source: lab-wiki, when: multiNode}\n", "",
            "fabric.yaml:5:1: rdma is true but env sets no NCCL_NET, so jobs would crawl over sockets where RDMA is "
            "missing\n  hint: write for example NCCL_NET:"),
        ("NCCL_IB_HCA", "WORLD_SIZE", "fabric.yaml:10:3: env.WORLD_SIZE is set by torchrun itself, differently in "
            "each process\n  hint: remove it"),
        ("NCCL_IB_HCA", "PET_NNODES", "fabric.yaml:10:3: env.PET_NNODES is set by torchrun itself"),
        ("NCCL_IB_HCA", "DDPK8S_JOB", "fabric.yaml:10:3: env.DDPK8S_JOB is set by the launcher itself"),
        ("NCCL_IB_HCA", "LD_LIBRARY_PATH",
            "fabric.yaml:10:3: env.LD_LIBRARY_PATH would replace what the image or Kubernetes sets\n"
            "  hint: write libraryPaths"),
        ("${rail}", "${rails}", "fabric.yaml:10:3: env.NCCL_IB_HCA refers to `rails`, which is no parameter of the "
            "profile\n  hint: declare it under parameters"),
        ("source: lab-wiki, why: one rail", "why: one rail", "fabric.yaml:10:3: env.NCCL_IB_HCA.source is missing"),
        ("rdma/lab", "cpu", "fabric.yaml:12:3: resources.cpu is no extended resource, as in rdma/ib, nor huge pages\n"
            "  hint: cpu, memory and GPUs come from spec.resources"),
        ("default: a", 'default: a, pattern: "["', "is no Python regular expression"),
        ("  rail: {", "  gpus: {description: x}\n  rail: {",
            "fabric.yaml:7:3: parameters.gpus is a name that the launcher gives a value\n  hint: rename it"),
        ("rdma: true", "volumes: [{item: {name: gib}, source: a}]",
            "fabric.yaml:5:19: volumes[0].item.name is 'gib', but names in a profile begin with ddpk8s-, which no "
            "job's do\n  hint: write ddpk8s-gib"),
        ("rdma: true", "volumes: [{item: {name: ddpk8s-a, hostPath: /a}, source: a}]",
            "volumes[0].item.hostPath has no path\n  hint: write hostPath: {path: /...}"),
        ("rdma: true", "mounts: [{item: {name: ddpk8s-a, mountPath: /a}, source: a}]",
            "mounts[0].item.name is 'ddpk8s-a', which is no volume of the profile"),
        ("rdma: true", "sidecars: [{item: {name: ddpk8s-a, image: b}, source: a}]",
            "sidecars[0].item.restartPolicy must be Always\n  hint: write restartPolicy: Always"),
        ("rdma: true", "initContainers: [{item: {name: ddpk8s-a, image: b, securityContext: []}, source: a}]",
            "initContainers[0].item.securityContext is not as in a pod's manifest"),
        ("rdma: true", "objects: [{item: {apiVersion: v1, kind: A}, source: a}]",
            "objects[0].item.metadata has no name"),
        ("rdma: true", "claims: [{item: {}, source: a}]", "claims[0].item.name is missing, but must be text"),
        (OWN, "- a\n", "must be a mapping with apiVersion, kind: FabricProfile and name"),
        (OWN, "", "is empty"),
        (OWN, "a: [\n", "fabric.yaml"),
        (OWN, "a" * (MAX_BYTES + 1), "is larger than 256 KiB, which no profile needs"),
    ],
)  # fmt: skip
def test_mistake_in_the_file_is_told_with_place_and_fix(file: Path, old: str, new: str, printed: str) -> None:
    file.write_text(OWN.replace(old, new), encoding="utf-8")
    with pytest.raises(SpecError) as failure:
        load_profiles(file)
    assert printed in str(failure.value)


def test_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no such file"):
        load_profiles(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        load_profiles(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"name: \xe9\n")
    with pytest.raises(SpecError, match="is not UTF-8"):
        load_profiles(latin)
