"""The `topology` section: how many processes, in torchrun's words."""

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.resources import Resources


class Topology(Section):
    """Nodes and processes, in torchrun's words."""

    nnodes: int = field("Number of nodes; each is one pod.", 1, unit="nodes", ge=1, le=4096, example=2)
    nproc_per_node: int | None = field(
        "Processes on each node. By default as many as the pod has GPUs, and 1 without GPUs.",
        None,
        unit="processes",
        ge=1,
        le=128,
        example=8,
    )
    master_port: int | None = field(
        "TCP port of the rendezvous on node rank 0; by default a free one is taken.",
        None,
        ge=1024,
        le=65535,
        example=29500,
    )

    def processes_per_node(self, resources: Resources) -> int:
        """Return `nprocPerNode` as it will be: as given, else the pod's GPUs, else 1."""
        return self.nproc_per_node or resources.gpu or 1
