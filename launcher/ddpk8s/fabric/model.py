"""What a fabric profile may say. Every line carries its source; `${name}` stands for a parameter."""

from typing import Any, Literal

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.fabric import PROFILES
from ddpk8s.spec.names import DnsLabel, EnvName, LabelKey, Text

API_VERSION = "ddpk8s.dev/v1alpha1"
KIND = "FabricProfile"


class Line(Section):
    """What every line has: where it comes from, and when it counts."""

    source: Text = field("Key of `sources`, or an address: where this line was read.", example="nccl-env")
    why: Text | None = field("What it is for.", None, example="stops a job that would crawl over sockets")
    when: Literal["always", "multiNode"] = field(
        "`multiNode`: only in jobs with more than one node.", "always"
    )
    if_set: EnvName | None = field("Only if this parameter has a value.", None, example="hugepages")
    unless_set: EnvName | None = field("Only if this parameter has no value.", None, example="hugepages")


class Value(Line):
    """A line whose value is text."""

    value: Text = field("The value; left out if it names a parameter that has none.", example="eth0")


class Item(Line):
    """A line whose value is a part of a Kubernetes object."""

    item: dict[str, Any] = field("The object, as in a pod's manifest.", example={"name": "gib"})


class Parameter(Section):
    """Something that differs from cluster to cluster."""

    description: Text = field("What it is and how to find it.")
    default: Text | None = field("Value where a job says nothing; absent, none.", None, example="eth0")
    required: bool = field("Whether a job must give it.", False)
    by_instance_type: dict[LabelKey, Value] = field(
        "Values by the node label `node.kubernetes.io/instance-type` in the job's nodeSelector.",
        dict,
        example={"p5.48xlarge": {"value": "32", "source": "aws-instances"}},
    )
    pattern: Text = field("Regular expression of its values.", r"[A-Za-z0-9._/:,=^@+-]*")


class Detection(Section):
    """By what a node shows that it has this fabric."""

    order: int = field("Profiles are tried in this order: a cloud's own label before a resource's name.")
    labels: dict[LabelKey, list[Text]] = field(
        "Node labels that must be there, with patterns (`*`) of their values; an empty list takes any.", dict
    )
    resources: list[Text] = field("Patterns of allocatable resources, of which one must be there.", list)
    source: Text = field("Where this was read.")


class Expected(Section):
    """All-reduce bus bandwidth that somebody measured."""

    setup: Text = field("Nodes, GPUs and message size.", example="2 x 8 A100, 8 GiB")
    gigabytes_per_second: float = field("Bus bandwidth.", unit="GB/s", gt=0)
    source: Text = field("Where this was read.")


class Profile(Section):
    """A fabric profile."""

    api_version: Literal["ddpk8s.dev/v1alpha1"] = field("Version of this format.", example=API_VERSION)
    kind: Literal["FabricProfile"] = field("Kind of the document.", example=KIND)
    name: DnsLabel = field("Name of the profile.", example="ib-shared")
    description: Text = field("The network in one sentence.")
    reviewed: bool = field("Whether each line was compared with its source.", False)
    devices: Literal["cpu", "gpu"] = field("What it connects.", "gpu")
    nodes: Literal["one", "any"] = field("`one` works inside one node only.", "any")
    rdma: bool = field(
        "Whether it promises remote memory access; then it must pin the transport by NCCL_NET for jobs with "
        "more than one node, so that they stop where it is missing.",
        False,
    )
    gpus_per_node: int | None = field("Pods must have all these GPUs of a node; absent, any number.", None)
    architecture: Literal["amd64", "arm64"] | None = field("Architecture of nodes and image.", None)
    minimum_nccl: Value | None = field("Oldest NCCL that works.", None)
    parameters: dict[EnvName, Parameter] = field("What a job may or must say.", dict)
    env: dict[EnvName, Value] = field("Environment variables; those of the job win.", dict)
    library_paths: list[Value] = field("Directories put in front of LD_LIBRARY_PATH.", list)
    prologue: list[Value] = field("Shell lines that run before the agent starts.", list)
    resources: dict[Text, Value] = field("Resources of the pod, request and limit.", dict)
    volumes: list[Item] = field("Volumes of the pod.", list)
    mounts: list[Item] = field("Mounts of our container.", list)
    annotations: dict[LabelKey, Value] = field("Annotations of the pod.", dict)
    labels: dict[LabelKey, Value] = field("Labels of the pod.", dict)
    node_selector: dict[LabelKey, Value] = field("Labels that nodes must have.", dict)
    tolerations: list[Item] = field("Taints that pods tolerate.", list)
    near: list[Value] = field("Node labels whose value all pods of the job must share.", list)
    capabilities: list[Value] = field("Capabilities of our container.", list)
    privileged: Line | None = field("Whether our container must be privileged; absent, not.", None)
    host_network: Line | None = field("Whether pods use the node's network; absent, not.", None)
    sidecars: list[Item] = field("Containers that run beside ours and end with it.", list)
    init_containers: list[Item] = field("Containers that run before ours.", list)
    claims: list[Item] = field("Resource claims of the pod, used by our container.", list)
    objects: list[Item] = field("Further objects of the job.", list)
    notes: list[Value] = field("What a person should know.", list)
    expected: list[Expected] = field("Bandwidths to compare with.", list)
    detection: Detection | None = field("How its nodes are told.", None)
    sources: dict[Text, Text] = field("Addresses by key, besides those the launcher knows.", dict)

    @property
    def own(self) -> bool:
        """Whether it comes from a file of the user."""
        return self.name not in PROFILES
