"""Processes against GPUs, memory against what is in it."""

import re
from collections.abc import Iterator

from ddpk8s.spec.job import JobSpec
from ddpk8s.spec.problems import Problem, error, warning
from ddpk8s.spec.values import amount, format_bytes, parse_quantity

MIB = 1024**2
_MOST_CORES = 4096


def check_resources(spec: JobSpec) -> Iterator[Problem]:
    """Yield problems of `topology` and `resources`."""
    yield from _check_processes(spec)
    yield from _check_gpu_fields(spec)
    yield from _check_device_class(spec)
    yield from _check_cpu(spec)
    yield from _check_memory(spec)


def _check_processes(spec: JobSpec) -> Iterator[Problem]:
    gpu, nproc = spec.resources.gpu, spec.nproc_per_node
    field, related = "spec.topology.nprocPerNode", ["spec.resources.gpu"]
    text = f"is {nproc} but spec.resources.gpu is {gpu}"
    if nproc > gpu > 0:
        hint = (
            f"each process needs a GPU: set both to the same number, or leave nprocPerNode out to get {gpu}"
        )
        yield error(field, text, hint, related)
    elif 0 < nproc < gpu:
        hint = "fine if each process of your script uses several GPUs; else leave nprocPerNode out"
        yield warning(field, f"{text}, so {gpu - nproc} of them may stay idle", hint, related)


def _check_gpu_fields(spec: JobSpec) -> Iterator[Problem]:
    resources, related = spec.resources, ["spec.resources.gpu"]
    if resources.gpu == 0:
        hint = "set spec.resources.gpu, or remove this field"
        if resources.gpu_product is not None:
            yield error("spec.resources.gpuProduct", "is set but spec.resources.gpu is 0", hint, related)
        if resources.gpu_resource != "nvidia.com/gpu":
            yield error("spec.resources.gpuResource", "is set but spec.resources.gpu is 0", hint, related)
        if resources.device_class is not None:
            yield error("spec.resources.deviceClass", "is set but spec.resources.gpu is 0", hint, related)
    elif re.search(r"/mig-|\.shared$", resources.gpu_resource) and spec.world_size > 1:
        yield error(
            "spec.resources.gpuResource",
            f"is {resources.gpu_resource} but the job has {spec.world_size} processes, "
            "and NCCL does not work between parts of GPUs",
            "take whole GPUs, or one process: nnodes: 1, nprocPerNode: 1",
            ["spec.resources.gpu", "spec.topology"],
        )


def _check_device_class(spec: JobSpec) -> Iterator[Problem]:
    resources = spec.resources
    if resources.device_class is not None and resources.gpu_resource != "nvidia.com/gpu":
        hint = "keep `deviceClass` for resource claims, or `gpuResource` for a device plugin"
        yield error(
            "spec.resources.deviceClass",
            "and spec.resources.gpuResource are both given, but exclude each other",
            hint,
            ["spec.resources.gpuResource"],
        )
    if resources.gpu_product is not None and not resources.gpu_resource.startswith("nvidia.com/"):
        hint = "select nodes by spec.scheduling.nodeSelector, with the label that your vendor's labeller sets"
        yield error(
            "spec.resources.gpuProduct",
            f"is the label nvidia.com/gpu.product, but spec.resources.gpuResource is {resources.gpu_resource}",
            hint,
            ["spec.resources.gpuResource"],
        )


def _check_cpu(spec: JobSpec) -> Iterator[Problem]:
    resources = spec.resources
    if resources.guaranteed:
        missing = [name for name in ("cpu", "memory") if getattr(resources, name) is None]
        if missing:
            fields = " and ".join(f"spec.resources.{name}" for name in missing)
            hint = "class Guaranteed needs both: set them, or remove `guaranteed`"
            yield error(
                "spec.resources.guaranteed", f"is true but {fields} is not set", hint, ["spec.resources"]
            )
    if resources.cpu is None:
        return
    cores = parse_quantity(resources.cpu)
    if not 0 < cores <= _MOST_CORES:
        hint = "write a number of cores, as in 64, or thousandths, as in 500m"
        yield error("spec.resources.cpu", f"is {resources.cpu}, which is no sensible number of cores", hint)
    elif cores < spec.nproc_per_node:
        yield warning(
            "spec.resources.cpu",
            f"is {resources.cpu} for {amount(spec.nproc_per_node, 'processes')} on each node, less than a core each",
            None,
            ["spec.topology.nprocPerNode", "spec.resources.gpu"],
        )


def _check_memory(spec: JobSpec) -> Iterator[Problem]:
    resources, sound = spec.resources, True
    for name, value in (("memory", resources.memory), ("sharedMemory", resources.shared_memory)):
        if value is not None and parse_quantity(value) < MIB:
            sound = False
            number = re.sub(r"\D.*", "", value) or "1"
            hint = (
                f"without a unit it means bytes, and `m` thousandths; did you mean {number}Gi or {number}Mi?"
            )
            yield error(f"spec.resources.{name}", f"is {value}, less than a mebibyte", hint)
    if resources.memory_bytes is None or not sound:
        return
    in_memory = [(f"spec.storage[{i}].emptyDir.sizeLimit", int(parse_quantity(volume.empty_dir.size_limit)))
        for i, volume in enumerate(spec.storage)
        if volume.empty_dir and volume.empty_dir.medium == "Memory" and volume.empty_dir.size_limit
    ]  # fmt: skip
    total = resources.shared_memory_bytes + sum(size for _, size in in_memory)
    if total >= resources.memory_bytes:
        parts = f"is {format_bytes(resources.shared_memory_bytes)}"
        parts += "".join(f" and {field} is {format_bytes(size)}" for field, size in in_memory)
        yield error(
            "spec.resources.sharedMemory",
            f"{parts}, but spec.resources.memory, in which that counts, is {resources.memory}",
            f"raise memory above {format_bytes(total)}, or lower the rest",
            ["spec.resources.memory", "spec.storage"],
        )
