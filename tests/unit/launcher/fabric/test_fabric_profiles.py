"""What holds for every profile that comes with the launcher."""

from collections.abc import Callable
from typing import Any

import kubernetes_validate
import pytest

from ddpk8s.fabric import additions, explain, load_profiles
from ddpk8s.fabric.additions import Additions
from ddpk8s.fabric.judge import lines_of
from ddpk8s.fabric.load import DIRECTORY
from ddpk8s.fabric.sources import known_sources
from ddpk8s.spec.fabric import PROFILES
from ddpk8s.spec.job import TrainingJob

WithProfile = Callable[..., TrainingJob]
REVIEWED = {"cpu-gloo", "tcp", "nvlink", "ib-shared", "ib-sriov", "aws-efa", "gke-rdma", "custom"}
RDMA = set(PROFILES) - {"cpu-gloo", "tcp", "nvlink", "custom"}


def pod_of(found: Additions) -> dict[str, Any]:
    """Return the smallest pod that holds all that a profile adds."""
    container = {
        "name": "pytorch",
        "image": "a",
        "env": [{"name": name, "value": value.value} for name, value in found.env.items()],
        "resources": {
            "limits": dict(found.resources),
            "claims": [{"name": claim["name"]} for claim in found.claims],
        },
        "volumeMounts": list(found.mounts),
        "securityContext": {
            "capabilities": {"add": list(found.capabilities)},
            "privileged": found.privileged,
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "annotations": dict(found.annotations), "labels": dict(found.labels)},
        "spec": {
            "containers": [container],
            "initContainers": [*found.sidecars, *found.init_containers],
            "volumes": list(found.volumes),
            "nodeSelector": dict(found.node_selector),
            "tolerations": list(found.tolerations),
            "resourceClaims": list(found.claims),
            "hostNetwork": found.host_network,
        },
    }


def test_files_and_names_agree() -> None:
    assert sorted(path.stem for path in DIRECTORY.glob("*.yaml")) == sorted(PROFILES)
    assert all(load_profiles()[name].name == name for name in PROFILES)


def test_reviewed_are_only_those_that_were() -> None:
    assert {name for name, profile in load_profiles().items() if profile.reviewed} == REVIEWED


@pytest.mark.parametrize("name", PROFILES)
def test_every_line_has_a_known_source(name: str) -> None:
    profile = load_profiles()[name]
    keys = [line.source for _, line in lines_of(profile)]
    keys += [entry.source for entry in profile.expected]
    assert profile.detection is None or profile.detection.source in known_sources()
    assert keys
    assert set(keys) <= known_sources().keys()


def test_no_source_is_left_over() -> None:
    used = {line.source for profile in load_profiles().values() for _, line in lines_of(profile)}
    used |= {entry.source for profile in load_profiles().values() for entry in profile.expected}
    used |= {profile.detection.source for profile in load_profiles().values() if profile.detection}
    assert known_sources().keys() - used == {"ipc-lock-root"}  # of a line that follows from capabilities


@pytest.mark.parametrize("name", PROFILES)
def test_kubernetes_knows_all_that_a_profile_adds(with_profile: WithProfile, name: str) -> None:
    job = with_profile(name)
    found = additions(load_profiles()[name], job)
    kubernetes_validate.validate(pod_of(found), "1.34", strict=True)
    volumes = {volume["name"] for volume in found.volumes}
    mounts = [mount["name"] for mount in found.mounts]
    mounts += [mount["name"] for sidecar in found.sidecars for mount in sidecar["volumeMounts"]]
    assert set(mounts) == volumes
    assert all(volume.startswith("ddpk8s-") for volume in volumes)


@pytest.mark.parametrize("name", PROFILES)
def test_nothing_refers_to_a_parameter_any_more(with_profile: WithProfile, name: str) -> None:
    job = with_profile(name)
    found = additions(load_profiles()[name], job)
    plain = (pod_of(found), found.objects, found.notes, explain(load_profiles()[name], job))
    assert "${" not in str(plain)


@pytest.mark.parametrize("name", sorted(RDMA))
def test_job_of_several_nodes_stops_when_rdma_is_missing(with_profile: WithProfile, name: str) -> None:
    profile = load_profiles()[name]
    assert profile.rdma
    several = additions(profile, with_profile(name))
    pins = {key: several.env[key].value for key in ("NCCL_NET", "NCCL_MNNVL_ENABLE") if key in several.env}
    assert pins
    assert pins.get("NCCL_NET", "IB") not in ("Socket", "")
    assert any("stops" in note for note in several.notes)
    one = additions(profile, with_profile(name, "spec.topology.nnodes=1"))
    assert not {"NCCL_NET", "NCCL_MNNVL_ENABLE"} & one.env.keys()


@pytest.mark.parametrize("name", sorted(set(PROFILES) - {"cpu-gloo", "nvlink", "custom"}))
def test_plugin_of_the_image_is_never_left_to_chance(with_profile: WithProfile, name: str) -> None:
    found = additions(load_profiles()[name], with_profile(name))
    google = name == "gke-tcpx"  # its plugin replaces libnccl-net.so itself
    assert "NCCL_NET_PLUGIN" in found.env or "unset NCCL_NET_PLUGIN" in found.prologue or google


@pytest.mark.parametrize("name", sorted(set(PROFILES) - {"custom", "nvlink"}))
def test_gloo_has_an_interface_everywhere(with_profile: WithProfile, name: str) -> None:
    assert "GLOO_SOCKET_IFNAME" in additions(load_profiles()[name], with_profile(name)).env


@pytest.mark.parametrize("name", sorted(set(PROFILES) - REVIEWED))
def test_output_says_that_a_profile_is_untested(with_profile: WithProfile, name: str) -> None:
    note = additions(load_profiles()[name], with_profile(name)).notes[0]
    assert note == f"the profile {name} is untested on hardware: compare its lines with your cluster"


@pytest.mark.parametrize("name", sorted(REVIEWED))
def test_output_does_not_warn_of_what_was_reviewed(with_profile: WithProfile, name: str) -> None:
    assert not any("untested" in note for note in additions(load_profiles()[name], with_profile(name)).notes)


@pytest.mark.parametrize("name", PROFILES)
def test_two_calls_return_the_same(with_profile: WithProfile, name: str) -> None:
    job = with_profile(name)
    assert additions(load_profiles()[name], job) == additions(load_profiles()[name], job)
