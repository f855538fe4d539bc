"""The `fabric` section: which network profile a job uses, and what the profile leaves to be said."""

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.names import DnsLabel, EnvName, Text

PROFILES = (
    "ack-lingjun",
    "aks-nd",
    "aws-efa",
    "coreweave-ib",
    "coreweave-roce",
    "cpu-gloo",
    "custom",
    "gke-a4x",
    "gke-rdma",
    "gke-tcpx",
    "gke-tcpxo",
    "ib-shared",
    "ib-sriov",
    "mnnvl",
    "nvlink",
    "oci-hostnet",
    "oci-vf",
    "roce",
    "tcp",
)
"""Profiles that come with the launcher; their data lie in `ddpk8s.fabric.profiles`, a file each."""


class Fabric(Section):
    """The network between nodes: NCCL's settings and all that must come with them."""

    profile: DnsLabel | None = field(
        "Name of a fabric profile. Absent: `cpu-gloo` without GPUs, `nvlink` for several GPUs on one node, "
        "else `tcp`, which every cluster has.",
        None,
        example="aws-efa",
    )
    profile_file: Text | None = field(
        "A profile of your own instead: a YAML file, its path taken from where the job file lies.",
        None,
        example="./fabric.yaml",
    )
    parameters: dict[EnvName, Text] = field(
        "What the profile leaves to be said, for example the name of a device resource; quote numbers.",
        dict,
        example={"resource": "rdma/hca_shared"},
    )
