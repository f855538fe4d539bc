"""The `storage` section: volumes by name, mounted in every pod."""

from typing import Literal

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.names import AbsolutePath, DnsLabel, ObjectName, Text
from ddpk8s.spec.values import Quantity

SOURCES = (
    *("persistent_volume_claim", "empty_dir", "host_path", "nfs", "config_map", "secret", "ephemeral"),
    "csi",
)
"""Fields of a volume that say where its files are; exactly one is set."""


class EmptyDir(Section):
    """Scratch space that lives as long as the pod."""

    medium: Literal["Memory"] | None = field(
        "`Memory` for a RAM disk (it counts in the pod's memory); absent, the node's disk.", None
    )
    size_limit: Quantity | None = field(
        "Most it may hold; a pod above it is evicted.", None, unit="bytes", example="100Gi"
    )


class Nfs(Section):
    """An NFS export."""

    server: Text = field("Host name or address of the server.", example="nfs.example")
    path: AbsolutePath = field("Exported path.", example="/exports/datasets")


class Ephemeral(Section):
    """A volume made for each pod from a storage class, and deleted with the pod."""

    storage: Quantity = field("Size of the volume.", unit="bytes", example="500Gi")
    storage_class_name: ObjectName | None = field(
        "Storage class; absent, the cluster's default.", None, example="local-nvme"
    )
    access_mode: Literal["ReadWriteOnce", "ReadWriteOncePod"] = field(
        "Access mode of the claim.", "ReadWriteOnce"
    )


class Csi(Section):
    """Files that a CSI driver brings into the pod, for example a bucket of an object store."""

    driver: ObjectName = field("Name of the driver.", example="gcsfuse.csi.storage.gke.io")
    volume_attributes: dict[Text, Text] = field(
        "What the driver wants to know; quote numbers and booleans.", dict, example={"bucketName": "datasets"}
    )
    secret: ObjectName | None = field(
        "Secret with the driver's credentials; absent, it needs none.", None, example="bucket-reader"
    )


class Volume(Section):
    """One volume, mounted in every pod. Exactly one source is set."""

    name: DnsLabel = field(
        "Name of the volume; `ddpk8s run` keeps its files in `.ddpk8s/volumes/NAME`.", example="checkpoints"
    )
    mount_path: AbsolutePath = field("Where it is mounted.", example="/checkpoints")
    read_only: bool = field("Mount it read-only.", False)
    sub_path: Text | None = field("Mount only this path inside the volume.", None, example="team-a/reviews")
    persistent_volume_claim: ObjectName | None = field(
        "Source: name of a PersistentVolumeClaim. Several nodes need one with access mode ReadWriteMany.",
        None,
        example="ckpt",
    )
    empty_dir: EmptyDir | None = field(
        "Source: scratch space of the pod; `{}` for the defaults.", None, example={"sizeLimit": "100Gi"}
    )
    host_path: AbsolutePath | None = field("Source: directory of the node.", None, example="/mnt/nvme")
    nfs: Nfs | None = field(
        "Source: NFS export.", None, example={"server": "nfs.example", "path": "/exports/datasets"}
    )
    config_map: ObjectName | None = field("Source: name of a ConfigMap.", None, example="label-names")
    secret: ObjectName | None = field(
        "Source: name of a Secret, its keys as files.", None, example="service-account"
    )
    ephemeral: Ephemeral | None = field(
        "Source: volume made for each pod.", None, example={"storage": "500Gi"}
    )

    csi: Csi | None = field(
        "Source: what a CSI driver brings, for example a bucket.",
        None,
        example={"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "datasets"}},
    )

    @property
    def source(self) -> str | None:
        """Python name of the source that is set, the first one if several are; None if none is."""
        return next((name for name in SOURCES if getattr(self, name) is not None), None)

    @property
    def outlives_pod(self) -> bool:
        """Whether a pod started anew, perhaps on another node, finds the files again."""
        return self.source in ("persistent_volume_claim", "nfs", "csi")

    @property
    def writable(self) -> bool:
        """Whether pods can write to it."""
        return not self.read_only and self.source not in ("config_map", "secret")

    def holds(self, path: str) -> bool:
        """Return whether an absolute path lies in the mount."""
        return path == self.mount_path or path.startswith(self.mount_path.rstrip("/") + "/")
