"""A job against its profile: what was wrong, where, and the fix."""

from collections.abc import Callable

import pytest

from ddpk8s.errors import SpecErrors
from ddpk8s.fabric import additions, check_profile, load_profiles
from ddpk8s.spec.job import TrainingJob

WithProfile = Callable[..., TrainingJob]
P = "spec.fabric.parameters"
RAW = "spec.podTemplate.spec"


def said(job: TrainingJob) -> list[tuple[str, str, bool]]:
    """Return message, hint and whether it is a warning, of all that is said about a job and its profile."""
    found = check_profile(load_profiles()[job.spec.fabric.profile], job)
    return [(problem.message, problem.hint or "", problem.warning) for problem in found]


@pytest.mark.parametrize(
    ("name", "sets", "message", "hint"),
    [
        ("tcp", ["spec.resources.gpu=0"],
            "spec.fabric.profile is 'tcp', which connects GPUs, but spec.resources.gpu is 0", "cpu-gloo"),
        ("cpu-gloo", ["spec.resources.gpu=8"],
            "spec.fabric.profile is 'cpu-gloo', which is for jobs without GPUs, but spec.resources.gpu is 8",
            "leave it out"),
        ("nvlink", ["spec.topology.nnodes=2"],
            "spec.fabric.profile is 'nvlink', which works inside one node only, but spec.topology.nnodes is 2",
            "tcp works everywhere"),
        ("gke-rdma", ["spec.resources.gpu=4"],
            "spec.fabric.profile is 'gke-rdma', whose pods need all 8 GPUs of a node, but spec.resources.gpu is 4",
            "set spec.resources.gpu: 8"),
        ("ib-shared", [f"{P}={{}}"],
            f"{P} has no `resource`, which the profile ib-shared needs", "allocatable"),
        ("aws-efa", [f"{P}={{}}"],
            f"{P} has no `devices`, which the profile aws-efa needs", "p5.48xlarge 32"),
        ("tcp", [f"{P}={{interfaces: eth0}}"],
            f"{P}.interfaces is no parameter of the profile tcp", "did you mean interface?"),
        ("nvlink", [f"{P}={{x: a}}"], f"{P}.x is no parameter of the profile nvlink", "known are none"),
        ("ib-sriov", [f'{P}={{devices: "eight"}}'],
            f"{P}.devices is 'eight', but must match [1-9][0-9]{{0,2}}", "HCAs of each pod"),
        ("tcp", [f'{P}={{interface: ""}}'],
            f"{P}.interface is '', but must match [A-Za-z0-9._@-]{{1,15}}", "Network interface"),
        ("roce", [f'{P}={{resource: a/b, networks: "a\\"b"}}'],
            f"{P}.networks is 'a\"b', but must match [A-Za-z0-9._/:,=^@+-]*", "NetworkAttachmentDefinitions"),
        ("aws-efa", ["spec.env.LD_LIBRARY_PATH=/usr/lib:/opt/amazon/efa/lib"],
            "spec.env.LD_LIBRARY_PATH leaves out /opt/amazon/ofi-nccl/lib/x86_64-linux-gnu, "
            "where the profile aws-efa finds its plugin", "or remove it"),
        ("gke-tcpx", ["spec.storage=[{name: a, mountPath: /tmp/a, emptyDir: {}}]"],
            "spec.storage[0].mountPath is '/tmp/a', but the profile gke-tcpx mounts /tmp", "choose another path"),
        ("ib-shared", ["spec.storage=[{name: a, mountPath: /ib, hostPath: /dev/infiniband}]"],
            "spec.storage[0].hostPath is /dev/infiniband, but the profile ib-shared asks for rdma/hca_shared, "
            "which brings the devices that the pod may use; NCCL would try to open the others too",
            "remove the volume"),
        ("aws-efa", [f"{RAW}.volumes=[{{name: a, hostPath: {{path: /dev/infiniband/}}}}]"],
            "spec.podTemplate.spec.volumes[0].hostPath.path is /dev/infiniband, but the profile aws-efa asks for "
            "vpc.amazonaws.com/efa, which brings the devices that the pod may use; NCCL would try to open the "
            "others too", "remove the volume"),
        ("aws-efa", ["spec.resources={gpu: 8}", f'{P}={{devices: "32", hugepages: 5120Mi}}'],
            "spec.resources has neither cpu nor memory, which Kubernetes wants with huge pages",
            "set spec.resources.memory"),
        ("mnnvl", ["spec.scheduling.nodeSelector={kubernetes.io/arch: amd64}"],
            'spec.scheduling.nodeSelector["kubernetes.io/arch"] is \'amd64\', but the profile mnnvl is for nodes '
            "with arm64", "write kubernetes.io/arch: arm64"),
    ],
)  # fmt: skip
def test_job_is_refused_when_it_cannot_use_its_profile(
    with_profile: WithProfile, name: str, sets: list[str], message: str, hint: str
) -> None:
    job = with_profile(name, *sets)
    errors = [entry for entry in said(job) if not entry[2]]
    assert [entry[0] for entry in errors] == [message]
    assert hint in errors[0][1]
    with pytest.raises(SpecErrors) as failure:
        additions(load_profiles()[name], job)
    assert f"reviews: {message}\n  hint: " in str(failure.value)


@pytest.mark.parametrize(
    ("name", "sets", "message"),
    [
        ("ib-shared", ["spec.env.NCCL_NET=Socket"],
            "spec.env.NCCL_NET is 'Socket', in place of 'IB' of the profile ib-shared: "
            "without RDMA the job may crawl over sockets and say nothing"),
        ("ib-sriov", ['spec.env.NCCL_IB_DISABLE="1"'],
            "spec.env.NCCL_IB_DISABLE is '1', in place of '0' of the profile ib-sriov: "
            "without RDMA the job may crawl over sockets and say nothing"),
        ("aws-efa", ["spec.env.NCCL_NET_PLUGIN=none"],
            "spec.env.NCCL_NET_PLUGIN is 'none', in place of 'ofi' of the profile aws-efa: "
            "without RDMA the job may crawl over sockets and say nothing"),
        ("ib-shared", [f"{RAW}.securityContext={{runAsUser: 1000}}"],
            "spec.podTemplate.spec.securityContext.runAsUser is 1000, but IPC_LOCK, which the profile ib-shared "
            "adds, works for root only"),
        ("aws-efa", [f"{RAW}.containers=[{{name: pytorch, securityContext: {{runAsUser: 7}}}}]"],
            "spec.podTemplate.spec.containers[0].securityContext.runAsUser is 7, but IPC_LOCK, which the profile "
            "aws-efa adds, works for root only"),
        ("tcp", [f"{RAW}.hostNetwork=true"],
            "spec.podTemplate.spec.hostNetwork is true, but the profile tcp takes =eth0, which nodes seldom have"),
        ("cpu-gloo", [f"{RAW}.hostNetwork=true"],
            "spec.podTemplate.spec.hostNetwork is true, but the profile cpu-gloo takes eth0, which nodes seldom have"),
        ("roce", ['spec.env.NCCL_IB_GID_INDEX="3"'],
            "spec.env.NCCL_IB_GID_INDEX is set for all pods, but with networks of multus the index differs from "
            "pod to pod"),
    ],
)  # fmt: skip
def test_job_is_warned_when_it_undoes_what_the_profile_is_for(
    with_profile: WithProfile, name: str, sets: list[str], message: str
) -> None:
    found = said(with_profile(name, *sets))
    assert [(entry[0], entry[2]) for entry in found] == [(message, True)]
    assert found[0][1]


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("ib-shared", ["spec.topology.nnodes=1", "spec.env.NCCL_NET=Socket"]),
        ("ib-shared", ["spec.env.NCCL_NET=IB"]),
        ("tcp", ["spec.env.NCCL_NET=Socket"]),
        ("ib-shared", [f"{RAW}.securityContext={{runAsUser: 0}}"]),
        ("tcp", [f"{RAW}.securityContext={{runAsUser: 1000}}"]),
        ("tcp", ["spec.env.LD_LIBRARY_PATH=/usr/lib"]),
        ("gke-rdma", ["spec.storage=[{name: a, mountPath: /usr/local, emptyDir: {}}]"]),
        ("oci-hostnet", []),
        ("oci-hostnet", [f"{RAW}.hostNetwork=true"]),
        ("tcp", [f"{RAW}.hostNetwork=true", "spec.fabric.parameters={interface: bond0}"]),
        ("nvlink", [f"{RAW}.hostNetwork=true"]),
    ],
)
def test_nothing_is_said_when_job_and_profile_agree(
    with_profile: WithProfile, name: str, sets: list[str]
) -> None:
    assert said(with_profile(name, *sets)) == []


def test_all_mistakes_are_told_at_once(with_profile: WithProfile) -> None:
    job = with_profile("gke-rdma", f"{P}={{a: b, networkPrefix: B}}", "spec.resources.gpu=2")
    with pytest.raises(SpecErrors) as failure:
        additions(load_profiles()["gke-rdma"], job)
    assert len(failure.value.errors) == 3


def test_variable_of_the_job_wins_and_is_told(with_profile: WithProfile) -> None:
    job = with_profile(
        "aws-efa", "spec.env.NCCL_NET=Socket", "spec.secrets=[{name: a, key: b, env: NCCL_DEBUG}]"
    )
    found = additions(load_profiles()["aws-efa"], job)
    assert {"NCCL_NET", "NCCL_DEBUG"} & found.env.keys() == set()
    assert "spec.env.NCCL_NET counts in place of the profile's NCCL_NET=AWS Libfabric" in found.notes
    assert "spec.secrets[0].env counts in place of the profile's NCCL_DEBUG=WARN" in found.notes
