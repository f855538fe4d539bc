"""What is known to fail on networks, found in the job file alone: what was wrong, where, and the fix."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.launcher.fabric.conftest import JOB

from ddpk8s.errors import SpecErrors
from ddpk8s.spec.load import load_job

E = "spec.env."
T = "spec.podTemplate.spec."
LINE = "spec.podTemplate.spec.containers[0].env[0]"


@pytest.fixture
def judge(tmp_path: Path) -> Callable[..., list[tuple[str, str, bool]]]:
    """Return a function that loads the job and returns message, hint and whether it is a warning."""

    def run(*sets: str) -> list[tuple[str, str, bool]]:
        file = tmp_path / "job.yaml"
        file.write_text(JOB, encoding="utf-8")
        found: list[object] = []
        try:
            load_job(file, sets, warn=found.append)
        except SpecErrors as failure:
            found = list(failure.errors)
        return [(f.problem.message, f.problem.hint or "", f.problem.warning) for f in found]

    return run


@pytest.mark.parametrize(
    ("sets", "message", "hint"),
    [
        (["spec.fabric.profile=aws-eva"], "spec.fabric.profile is 'aws-eva', which is no profile",
            "did you mean aws-efa?"),
        (["spec.fabric.profile=ib"], "spec.fabric.profile is 'ib', which is no profile",
            "did you mean ib-shared or ib-sriov?"),
        (["spec.fabric.profile=zzzz"], "spec.fabric.profile is 'zzzz', which is no profile", "known are ack-lingjun"),
        (["spec.fabric={profile: tcp, profileFile: a.yaml}"],
            "spec.fabric.profileFile and spec.fabric.profile are both given, but exclude each other", "keep"),
        ([f"{E}NCCL_SOCKET_IFNAME=^docker0"],
            f"{E}NCCL_SOCKET_IFNAME is '^docker0', which replaces NCCL's own list and so lets it take `lo`, "
            "where no other node answers", 'write "^lo,docker0"'),
        ([f"{E}NCCL_SOCKET_IFNAME=^=docker0,veth0"],
            f"{E}NCCL_SOCKET_IFNAME is '^=docker0,veth0', which replaces NCCL's own list and so lets it take `lo`, "
            "where no other node answers", 'write "^=lo,docker0,veth0"'),
        ([f"{E}NCCL_SOCKET_IFNAME===eth0"], f"{E}NCCL_SOCKET_IFNAME begins with ==, but only ^, = and ^= are known",
            'write "=eth0"'),
        ([f'{E}NCCL_SOCKET_IFNAME="eth0, eth1"'],
            f"{E}NCCL_SOCKET_IFNAME is 'eth0, eth1', in which ' eth1' is no name of an interface", '"=eth0"'),
        ([f'{E}NCCL_SOCKET_IFNAME=""'],
            f"{E}NCCL_SOCKET_IFNAME is '', in which '' is no name of an interface", '"=eth0"'),
        ([f"{E}NCCL_SOCKET_IFNAME=averyverylongname0"],
            f"{E}NCCL_SOCKET_IFNAME is 'averyverylongname0', in which 'averyverylongname0' is no name of an interface",
            '"=eth0"'),
        ([f"{E}NCCL_SOCKET_IFNAME=lo"], f"{E}NCCL_SOCKET_IFNAME is 'lo', and over `lo` no other node answers",
            'write "=eth0"'),
        ([f"{E}GLOO_SOCKET_IFNAME==eth0"],
            f"{E}GLOO_SOCKET_IFNAME is '=eth0', but must be names of interfaces, whole ones", "write for example eth0"),
        ([f"{E}GLOO_SOCKET_IFNAME=lo"], f"{E}GLOO_SOCKET_IFNAME is 'lo', and over `lo` no other node answers",
            "write eth0"),
        ([f"{E}NCCL_IB_HCA===mlx5_0"], f"{E}NCCL_IB_HCA begins with ==, but only ^, = and ^= are known",
            'write "=mlx5_0"'),
        ([f'{E}NCCL_IB_HCA="=mlx5_0,"'],
            f"{E}NCCL_IB_HCA is '=mlx5_0,', in which a name is empty or holds a space", '"=mlx5_0,mlx5_1"'),
        ([f"{E}NCCL_IB_HCA=={','.join(f'mlx5_{i}' for i in range(33))}"],
            f"{E}NCCL_IB_HCA names 33 cards, but NCCL takes 32 at most", "write a prefix"),
        ([f"{E}NCCL_SOCKET_FAMILY=IPv6"], f"{E}NCCL_SOCKET_FAMILY is 'IPv6', but must be one of AF_INET, AF_INET6",
            "AF_INET6"),
        ([f'{E}NCCL_SOCKET_NTHREADS="16"', f'{E}NCCL_NSOCKS_PERTHREAD="8"'],
            f"{E}NCCL_NSOCKS_PERTHREAD is 8, 128 sockets with {E}NCCL_SOCKET_NTHREADS, but NCCL takes 64 at most",
            "4 and 4"),
        ([f"{E}NCCL_SOCKET_NTHREADS=many"],
            f"{E}NCCL_SOCKET_NTHREADS is 'many', but must be a whole number from 1 to 64", ""),
        (["spec.resources.gpuProduct=NVIDIA-A100-SHARED"],
            "spec.resources.gpuProduct is NVIDIA-A100-SHARED, GPUs that several pods share, but the job has 16 "
            "processes, and NCCL does not work between parts of GPUs", "take whole GPUs"),
        (["spec.resources.gpuProduct=NVIDIA-A100-MIG-1g.10gb"],
            "spec.resources.gpuProduct is NVIDIA-A100-MIG-1g.10gb, GPUs that several pods share, but the job has 16 "
            "processes, and NCCL does not work between parts of GPUs", "take whole GPUs"),
        (["spec.scheduling.nodeSelector={nvidia.com/gpu.sharing-strategy: time-slicing}"],
            'spec.scheduling.nodeSelector["nvidia.com/gpu.sharing-strategy"] is time-slicing, but the job has 16 '
            "processes, and NCCL does not work between parts of GPUs", "take whole GPUs"),
        (["spec.resources.gpuResource=nvidia.com/gpu.shared"],
            "spec.resources.gpuResource is nvidia.com/gpu.shared but the job has 16 processes, and NCCL does not work "
            "between parts of GPUs", "take whole GPUs"),
        ([f"{T}initContainers=[{{name: a, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]"],
            f"{T}initContainers[0].resources asks for nvidia.com/gpu, which only our container may", "remove it"),
        ([f"{T}containers=[{{name: a, resources: {{limits: {{nvidia.com/gpu: '1'}}}}}}]"],
            f"{T}containers[0].resources asks for nvidia.com/gpu, which only our container may", "remove it"),
        ([f"{T}containers=[{{name: pytorch, env: [{{name: NVIDIA_VISIBLE_DEVICES, value: all}}]}}]"],
            f"{LINE} sets NVIDIA_VISIBLE_DEVICES, which would give pods GPUs that the scheduler gave to others",
            "spec.resources.gpu"),
        ([f"{T}containers=[{{name: pytorch, env: [{{name: RANK, value: '0'}}]}}]"],
            f"{LINE}.name is RANK, which is set by torchrun itself, differently in each process", "spec.topology"),
        ([f"{T}containers=[{{name: pytorch, env: [{{name: MASTER_ADDR, valueFrom: {{}}}}]}}]"],
            f"{LINE}.name is MASTER_ADDR, which is set by torchrun itself, differently in each process",
            "spec.topology"),
        ([f"{T}enableServiceLinks=true"],
            f"{T}enableServiceLinks is true: a Service called `master` in the namespace would set MASTER_PORT to "
            "tcp://...", "remove it"),
    ],
)  # fmt: skip
def test_job_is_refused_for_what_fails_on_every_cluster(
    judge: Callable[..., list[tuple[str, str, bool]]], sets: list[str], message: str, hint: str
) -> None:
    found = judge(*sets)
    assert [entry[0] for entry in found] == [message]
    assert not found[0][2]
    assert hint in found[0][1]


@pytest.mark.parametrize(
    ("sets", "message", "hint"),
    [
        (['NCCL_P2P_DISABLE="1"'], "is '1', which switches NVLink and PCIe between the GPUs of a node off", "ACS"),
        (['NCCL_SHM_DISABLE="1"'], "is '1', which sends what goes through /dev/shm over the network",
            "spec.resources.sharedMemory"),
        (['NCCL_NVLS_ENABLE="0"'],
            "is '0', which switches reductions inside NVSwitch off, which makes an all-reduce of one node slower",
            "fabric manager"),
        (['NCCL_IGNORE_DISABLED_P2P="1"'], "is '1', which hides that NVLink of a node is broken", "out of service"),
        (["NCCL_ALGO=Ring"], "is 'Ring', which fixes what NCCL chooses better by size and shape", "remove it"),
        (["NCCL_PROTO=LL"], "is 'LL', which fixes what NCCL chooses better by size and shape", "remove it"),
        (["NCCL_HOSTID=a"], "is 'a', which makes NCCL take all pods for one node, since all have the same", "remove"),
        (['NCCL_MULTI_RANK_GPU_ENABLE="1"'],
            "is '1', which lets two processes share a GPU, which is an experiment of NCCL's", "give each"),
        (['TORCH_NCCL_ASYNC_ERROR_HANDLING="0"'],
            "is '0', which lets a job with a broken connection hang for good", "torchrun sets it"),
        (['NCCL_ASYNC_ERROR_HANDLING="1"'], "is an old name", "TORCH_NCCL_"),
        (["TORCH_DISTRIBUTED_DEBUG=DETAIL"],
            "is 'DETAIL', which checks every collective twice and makes training slow", "remove it"),
        (["LD_PRELOAD=/a.so"],
            "is '/a.so', which loads a library into every process, the agent and the shell too", "remove it"),
        (['FI_EFA_USE_HUGE_PAGE="1"'], "is '1', which makes forks of data loaders fail with "
            "`Cannot allocate memory` where huge pages are few", "parameters.hugepages"),
        (['FI_EFA_FORK_SAFE="1"'], "is no longer needed", "remove it"),
        (['RDMAV_FORK_SAFE="1"'], "must not be set with current EFA software", "remove it"),
        (["NCCL_IB_HCA=mlx5_1,mlx5_2"],
            "is 'mlx5_1,mlx5_2', and mlx5_1 means mlx5_10 to mlx5_19 too, by its prefix", 'write "=mlx5_1,mlx5_2"'),
        (["NCCL_SOCKET_IFNAME==enp90s0np0"],
            "is '=enp90s0np0', but a pod has no interface enp90s0np0 unless it uses the node's network", '"=eth0"'),
        (['NCCL_IB_GID_INDEX="3"', 'spec.podTemplate.metadata.annotations["k8s.v1.cni.cncf.io/networks"]=a'],
            "is set for all pods, but with networks of multus the index differs from pod to pod", "NCCL_IB_ADDR_RANGE"),
        (['NCCL_SOCKET_IFNAME="^lo,docker"', f"{T}hostNetwork=true"],
            "is '^lo,docker', which lets NCCL take pod-id-link0 of AWS on the node's network",
            'write "^lo,docker,pod-id-link"'),
    ],
)  # fmt: skip
def test_job_is_warned_of_what_hides_a_fault_or_costs_speed(
    judge: Callable[..., list[tuple[str, str, bool]]], sets: list[str], message: str, hint: str
) -> None:
    name = sets[0].partition("=")[0]
    found = judge(E + sets[0], *sets[1:])
    assert [(entry[0], entry[2]) for entry in found] == [(f"{E}{name} {message}", True)]
    assert hint in found[0][1]


@pytest.mark.parametrize(
    "place", ["metadata.labels", "metadata.annotations", "spec.podTemplate.metadata.labels"]
)
def test_job_is_warned_of_a_mesh_between_its_pods(
    judge: Callable[..., list[tuple[str, str, bool]]], place: str
) -> None:
    found = judge(f'{place}["sidecar.istio.io/inject"]="true"')
    text = "puts Istio's proxy between the pods, through which neither gloo nor NCCL works"
    assert found == [(f'{place}["sidecar.istio.io/inject"] {text}', 'write "false", or remove it', True)]
    assert judge(f'{place}["sidecar.istio.io/inject"]="false"') == []
    assert judge(f'{place}["sidecar.istio.io/inject"]="true"', "spec.topology.nnodes=1") == []


@pytest.mark.parametrize(
    "sets",
    [
        [f"{E}NCCL_SOCKET_IFNAME==eth0"],
        [f"{E}NCCL_SOCKET_IFNAME=eth"],
        [f'{E}NCCL_SOCKET_IFNAME="eth0,net1"'],
        [f'{E}NCCL_SOCKET_IFNAME="^lo,docker"'],
        [f'{E}NCCL_SOCKET_IFNAME="^=lo,docker0"'],
        [f'{E}NCCL_SOCKET_IFNAME="^lo,docker,veth,pod-id-link"', f"{T}hostNetwork=true"],
        [f"{E}NCCL_SOCKET_IFNAME==enp90s0np0", f"{T}hostNetwork=true"],
        [f"{E}NCCL_SOCKET_IFNAME==bond0", "spec.fabric.profile=oci-hostnet"],
        [f"{E}NCCL_SOCKET_IFNAME==bond0", "spec.fabric.profileFile=own.yaml"],
        [f"{E}NCCL_SOCKET_IFNAME=lo", "spec.topology.nnodes=1"],
        [f"{E}GLOO_SOCKET_IFNAME=eth0"],
        [f"{E}NCCL_IB_HCA=mlx5"],
        [f'{E}NCCL_IB_HCA="=mlx5_1:1,mlx5_2:1"'],
        [f'{E}NCCL_IB_HCA="mlx5_0,mlx5_10"', f'{E}NCCL_P2P_DISABLE="0"', f"{E}NCCL_DEBUG=INFO"],
        [f'{E}NCCL_SOCKET_NTHREADS="8"', f'{E}NCCL_NSOCKS_PERTHREAD="8"'],
        [f"{E}NCCL_SOCKET_FAMILY=AF_INET6", f'{E}NCCL_IB_GID_INDEX="3"'],
        ["spec.resources={gpu: 1, gpuProduct: NVIDIA-A100-SHARED}", "spec.topology.nnodes=1"],
        [f"{T}initContainers=[{{name: a, resources: {{limits: {{cpu: 1}}}}}}]"],
        [f"{T}containers=[{{name: pytorch, env: [{{name: A, value: b}}]}}]", f"{T}enableServiceLinks=false"],
        [
            f"{T}containers=[1, {{name: a, resources: [], env: {{}}}}]".replace("[1, ", "["),
            f"{T}hostNetwork=1",
        ],
        ["spec.fabric.profile=tcp", "spec.fabric.parameters={anything: a}"],
    ],
)
def test_nothing_is_said_when_the_network_can_work(
    judge: Callable[..., list[tuple[str, str, bool]]], sets: list[str]
) -> None:
    assert judge(*sets) == []
