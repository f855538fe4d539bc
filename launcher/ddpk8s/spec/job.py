"""The root of the specification: `TrainingJob`, its metadata and its `spec`."""

from typing import Any, Literal

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.entrypoint import Entrypoint
from ddpk8s.spec.fabric import Fabric
from ddpk8s.spec.failure import FailurePolicy
from ddpk8s.spec.names import (
    DnsLabel,
    EnvName,
    Image,
    JobName,
    LabelKey,
    LabelValue,
    ObjectName,
    SecretKey,
    Text,
)
from ddpk8s.spec.resources import Resources
from ddpk8s.spec.scheduling import Scheduling
from ddpk8s.spec.storage import Volume
from ddpk8s.spec.topology import Topology
from ddpk8s.spec.training import Training

API_VERSION = "ddpk8s.dev/v1alpha1"
KIND = "TrainingJob"


class Metadata(Section):
    """Name and labels of the job, as in Kubernetes."""

    name: JobName = field(
        "Name of the job, unique in its namespace. Checkpoints are kept under it.", example="reviews"
    )
    namespace: DnsLabel | None = field(
        "Kubernetes namespace; absent, that of the kubeconfig's context.", None, example="ml"
    )
    labels: dict[LabelKey, LabelValue] = field(
        "Labels of every object of the job.", dict, example={"team": "nlp"}
    )
    annotations: dict[LabelKey, Text] = field(
        "Annotations of the job.", dict, example={"example.com/ticket": "NLP-12"}
    )


class SecretRef(Section):
    """A key of a Kubernetes Secret as an environment variable. Values never stand in the job file."""

    name: ObjectName = field("Name of the Secret.", example="wandb")
    key: SecretKey = field("Key in the Secret.", example="api-key")
    env: EnvName = field("Environment variable that gets its value.", example="WANDB_API_KEY")


class JobSpec(Section):
    """What is trained, on what, and what happens when it fails."""

    backend: Literal["IndexedJob", "PyTorchJob"] = field(
        "Kubernetes object that runs the pods: `IndexedJob` is a Job and needs nothing installed, "
        "`PyTorchJob` needs Kubeflow's training operator.",
        "IndexedJob",
    )
    image: Image = field(
        "Container image with Python 3.10 or newer and torch 2.4 or newer. `ddpk8s run` does not use it.",
        example="registry.example/ddpk8s-trainer:0.1.0",
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = field(
        "When the image is pulled; absent, Kubernetes' own rule.", None, example="IfNotPresent"
    )
    topology: Topology = field("Nodes and processes.", Topology)
    resources: Resources = field("What each pod asks of its node.", Resources)
    fabric: Fabric = field("Network between nodes.", Fabric)
    network_policy: bool = field(
        "Admit to the pods only pods of the same run: torch's and NCCL's ports ask nobody who they are.", True
    )
    env: dict[EnvName, Text] = field(
        "Environment variables of every process; quote numbers and booleans.",
        dict,
        example={"TOKENIZERS_PARALLELISM": "false"},
    )
    secrets: list[SecretRef] = field(
        "Environment variables from Kubernetes Secrets.",
        list,
        example=[{"name": "wandb", "key": "api-key", "env": "WANDB_API_KEY"}],
    )
    image_pull_secrets: list[ObjectName] = field("Secrets for pulling the image.", list, example=["regcred"])
    storage: list[Volume] = field(
        "Volumes, mounted in every pod.",
        list,
        example=[{"name": "checkpoints", "mountPath": "/checkpoints", "persistentVolumeClaim": "ckpt"}],
    )
    scheduling: Scheduling = field("Nodes and queue.", Scheduling)
    failure_policy: FailurePolicy = field("Restarts and time limits.", FailurePolicy)
    training: Training | None = field("The bundled trainer. Either this or `entrypoint`.", None)
    entrypoint: Entrypoint | None = field("Your own script. Either this or `training`.", None)
    pod_template: dict[str, Any] = field(
        "Escape hatch: any field of a Kubernetes pod (`metadata`, `spec`), merged last. Our container is "
        "called `pytorch`.",
        dict,
        example={"spec": {"runtimeClassName": "nvidia"}},
    )

    @property
    def nproc_per_node(self) -> int:
        """Processes on each node, defaults resolved."""
        return self.topology.processes_per_node(self.resources)

    @property
    def world_size(self) -> int:
        """Processes of the whole job."""
        return self.topology.nnodes * self.nproc_per_node

    def volume_of(self, path: str) -> Volume | None:
        """Return the volume in whose mount an absolute path lies (the innermost one), or None."""
        return max((v for v in self.storage if v.holds(path)), key=lambda v: len(v.mount_path), default=None)


class TrainingJob(Section):
    """One PyTorch training, on a laptop or a cluster."""

    api_version: Literal["ddpk8s.dev/v1alpha1"] = field("Version of this format.", example=API_VERSION)
    kind: Literal["TrainingJob"] = field("Kind of the document.", example=KIND)
    metadata: Metadata = field("Name and labels.")
    spec: JobSpec = field("What is trained, on what, and what happens when it fails.")
