"""The `scheduling` section: on which nodes, and in which queue."""

from typing import Literal

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.names import DnsLabel, LabelKey, LabelValue, ObjectName


class Toleration(Section):
    """A node taint that pods tolerate, as in Kubernetes."""

    key: LabelKey | None = field(
        "Key of the taint; absent with operator `Exists` it means every taint.", None, example="dedicated"
    )
    operator: Literal["Equal", "Exists"] = field(
        "`Equal` compares `value` too, `Exists` only the key.", "Equal"
    )
    value: LabelValue | None = field("Value of the taint.", None, example="training")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = field(
        "Effect of the taint; absent, all.", None
    )
    toleration_seconds: int | None = field(
        "How long a pod stays after a `NoExecute` taint appears; absent, for good.",
        None,
        unit="seconds",
        ge=0,
        example=300,
    )


class Scheduling(Section):
    """On which nodes pods run, and in which queue the job waits."""

    queue: DnsLabel | None = field(
        "Kueue LocalQueue in which the job waits for quota; absent, it starts at once.",
        None,
        example="team-a",
    )
    priority_class: ObjectName | None = field("PriorityClass of the pods.", None, example="high")
    node_selector: dict[LabelKey, LabelValue] = field(
        "Labels that nodes must have.", dict, example={"node-pool": "h100"}
    )
    tolerations: list[Toleration] = field(
        "Taints that pods tolerate, besides `nvidia.com/gpu` for jobs with GPUs.",
        list,
        example=[{"key": "dedicated", "value": "training", "effect": "NoSchedule"}],
    )
    topology_key: LabelKey | None = field(
        "Node label that says which nodes are network neighbors (rack, block, zone); pods are placed in "
        "as few of its values as possible.",
        None,
        example="topology.kubernetes.io/zone",
    )
