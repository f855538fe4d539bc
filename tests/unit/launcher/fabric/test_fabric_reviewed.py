"""The reviewed profiles, line by line as field reports and documentation have them."""

import json
from collections.abc import Callable

import pytest

from ddpk8s.fabric import Additions, additions, load_profiles
from ddpk8s.spec.job import TrainingJob

WithProfile = Callable[..., TrainingJob]
POD = {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0", "NCCL_DEBUG": "WARN"}
VERBS = {"NCCL_NET": "IB", "NCCL_NET_PLUGIN": "none", "NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "mlx5", **POD}


def add(job: TrainingJob) -> Additions:
    return additions(load_profiles()[job.spec.fabric.profile], job)


@pytest.mark.parametrize(
    ("name", "env", "resources", "level"),
    [
        ("cpu-gloo", {"GLOO_SOCKET_IFNAME": "eth0"}, {}, "restricted"),
        ("tcp", {**POD, "NCCL_IB_DISABLE": "1", "NCCL_NET_PLUGIN": "none"}, {}, "restricted"),
        ("nvlink", {"NCCL_DEBUG": "WARN"}, {}, "restricted"),
        ("custom", {"NCCL_DEBUG": "WARN"}, {}, "restricted"),
        ("ib-shared", VERBS, {"rdma/hca_shared": "1"}, "privileged"),
        ("ib-sriov", VERBS, {"rdma/ib": "8"}, "privileged"),
        (
            "aws-efa",
            {"NCCL_NET": "AWS Libfabric", "NCCL_NET_PLUGIN": "ofi", "FI_EFA_USE_HUGE_PAGE": "0", **POD},
            {"vpc.amazonaws.com/efa": "32"},
            "privileged",
        ),
        (
            "gke-rdma",
            {"NCCL_NET": "gIB", "GLOO_SOCKET_IFNAME": "eth0", "NCCL_DEBUG": "WARN"},
            {},
            "privileged",
        ),
    ],
)
def test_profile_adds_exactly_this(
    with_profile: WithProfile, name: str, env: dict[str, str], resources: dict[str, str], level: str
) -> None:
    found = add(with_profile(name))
    assert {key: value.value for key, value in found.env.items()} == env
    assert found.resources == resources
    assert found.pod_security == level
    assert (found.host_network, found.privileged, found.dns_policy) == (False, False, None)
    assert [*found.sidecars, *found.init_containers, *found.claims, *found.objects, *found.labels] == []


@pytest.mark.parametrize("name", ["ib-shared", "ib-sriov", "aws-efa"])
def test_locked_memory_comes_with_the_capability_and_root(with_profile: WithProfile, name: str) -> None:
    found = add(with_profile(name))
    assert (found.capabilities, found.memlock, found.run_as_root) == (("IPC_LOCK",), True, True)


@pytest.mark.parametrize("name", ["cpu-gloo", "tcp", "nvlink", "custom", "gke-rdma"])
def test_no_capability_where_no_sample_has_one(with_profile: WithProfile, name: str) -> None:
    found = add(with_profile(name))
    assert (found.capabilities, found.memlock, found.run_as_root) == ((), False, False)


def test_virtual_functions_follow_the_gpus(with_profile: WithProfile) -> None:
    assert add(with_profile("ib-sriov", "spec.resources.gpu=4")).resources == {"rdma/ib": "4"}
    given = with_profile("ib-sriov", 'spec.fabric.parameters={devices: "2", resource: mellanox.com/vf}')
    assert add(given).resources == {"mellanox.com/vf": "2"}


@pytest.mark.parametrize(
    ("instance", "devices"),
    [
        ("p4d.24xlarge", "4"),
        ("p4de.24xlarge", "4"),
        ("p5.48xlarge", "32"),
        ("p5e.48xlarge", "32"),
        ("p5en.48xlarge", "16"),
        ("p6-b200.48xlarge", "8"),
        ("p6-b300.48xlarge", "16"),
        ("p6e-gb200.36xlarge", "4"),
    ],
)
def test_efa_interfaces_follow_the_instance_type(
    with_profile: WithProfile, instance: str, devices: str
) -> None:
    selector = f"spec.scheduling.nodeSelector={{node.kubernetes.io/instance-type: {instance}}}"
    job = with_profile("aws-efa", "spec.fabric.parameters={}", selector)
    assert add(job).resources == {"vpc.amazonaws.com/efa": devices}
    job = with_profile("aws-efa", 'spec.fabric.parameters={devices: "1"}', selector)
    assert add(job).resources == {"vpc.amazonaws.com/efa": "1"}


def test_huge_pages_are_used_when_they_are_given(with_profile: WithProfile) -> None:
    found = add(with_profile("aws-efa", 'spec.fabric.parameters={devices: "32", hugepages: 5120Mi}'))
    assert found.resources == {"vpc.amazonaws.com/efa": "32", "hugepages-2Mi": "5120Mi"}
    assert "FI_EFA_USE_HUGE_PAGE" not in found.env


def test_gke_brings_eight_networks_and_the_plugin(with_profile: WithProfile) -> None:
    found = add(with_profile("gke-rdma", "spec.fabric.parameters={networkPrefix: my-rdma-}"))
    networks = json.loads(found.annotations["networking.gke.io/interfaces"])
    assert networks[0] == {"interfaceName": "eth0", "network": "default"}
    assert networks[1:] == [{"interfaceName": f"eth{i + 2}", "network": f"my-rdma-{i}"} for i in range(8)]
    assert found.annotations["networking.gke.io/default-interface"] == "eth0"
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in found.volumes}
    mounts = {paths[mount["name"]]: mount["mountPath"] for mount in found.mounts}
    assert mounts == {
        "/home/kubernetes/bin/nvidia": "/usr/local/nvidia",
        "/home/kubernetes/bin/gib": "/usr/local/gib",
    }
    assert found.prologue[-1] == "source /usr/local/gib/scripts/set_nccl_env.sh"


def test_custom_sets_what_its_parameters_say(with_profile: WithProfile) -> None:
    parameters = (
        "{net: IB, netPlugin: none, interface: eth0, ibHca: ibp, resource: rdma/x, networks: default/a}"
    )
    found = add(with_profile("custom", f"spec.fabric.parameters={parameters}"))
    assert {name: value.value for name, value in found.env.items()} == {
        "NCCL_NET": "IB", "NCCL_NET_PLUGIN": "none", "NCCL_IB_HCA": "ibp", **POD,
    }  # fmt: skip
    assert found.resources == {"rdma/x": "1"}
    assert found.annotations == {"k8s.v1.cni.cncf.io/networks": "default/a"}
    assert found.capabilities == ("IPC_LOCK",)


def test_tcp_takes_ipv6_when_told(with_profile: WithProfile) -> None:
    found = add(with_profile("tcp", "spec.fabric.parameters={family: AF_INET6, interface: net1}"))
    assert found.env["NCCL_SOCKET_FAMILY"].value == "AF_INET6"
    assert found.env["NCCL_SOCKET_IFNAME"].value == "=net1"
