"""The `resources` section: what one pod asks of its node."""

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.names import LabelValue, ObjectName, ResourceName
from ddpk8s.spec.values import Quantity, parse_quantity

GIB = 1024**3


class Resources(Section):
    """What one pod asks of its node. Requests equal limits; the CPU has none (it throttles NCCL)."""

    gpu: int = field("GPUs of each pod; 0 trains on the CPU.", 0, unit="GPUs", ge=0, le=128, example=8)
    gpu_product: LabelValue | None = field(
        "Only nodes whose label `nvidia.com/gpu.product` is this.", None, example="NVIDIA-H100-80GB-HBM3"
    )
    gpu_resource: ResourceName = field(
        "Kubernetes' name of the GPUs, for example that of a MIG slice.",
        "nvidia.com/gpu",
        example="nvidia.com/mig-1g.10gb",
    )
    device_class: ObjectName | None = field(
        "DeviceClass whose driver gives the GPUs by resource claims, instead of `gpuResource` by a device plugin.",
        None,
        example="gpu.nvidia.com",
    )
    cpu: Quantity | None = field("CPU request of each pod; absent, none.", None, unit="cores", example="64")
    memory: Quantity | None = field(
        "Memory of each pod, shared memory included; absent, no limit.", None, unit="bytes", example="512Gi"
    )
    shared_memory: Quantity | None = field(
        "Size of /dev/shm, by which data loaders and NCCL pass data; by default the smaller of 8Gi and a "
        "quarter of `memory`.",
        None,
        unit="bytes",
        example="64Gi",
    )
    guaranteed: bool = field(
        "Limit the CPU to its request too, for pods of class Guaranteed with cores of their own.", False
    )

    @property
    def memory_bytes(self) -> int | None:
        """Memory of a pod in bytes; None where there is no limit."""
        return None if self.memory is None else int(parse_quantity(self.memory))

    @property
    def shared_memory_bytes(self) -> int:
        """Size of /dev/shm in bytes: as given, else the smaller of 8 GiB and a quarter of the memory."""
        if self.shared_memory is not None:
            return int(parse_quantity(self.shared_memory))
        return min(8 * GIB, self.memory_bytes // 4) if self.memory_bytes else 8 * GIB
