"""What can be known of the network without a cluster: names, NCCL's settings, devices of other containers."""

import re
from collections.abc import Iterator
from typing import Any

from ddpk8s.spec.checks.interfaces import check_interfaces
from ddpk8s.spec.checks.nccl import check_nccl
from ddpk8s.spec.fabric import PROFILES
from ddpk8s.spec.job import JobSpec, TrainingJob
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error, pod_warning
from ddpk8s.spec.suggest import suggest_word
from ddpk8s.spec.values import show

NETWORKS = "k8s.v1.cni.cncf.io/networks"
"""Annotation by which multus brings more networks into a pod."""

CONTAINER = "pytorch"
_POD: Path = ("spec", "podTemplate", "spec")
_SHARED = re.compile(r"-SHARED$|-MIG-")
_ISTIO = "sidecar.istio.io/inject"
_SHARING = "nvidia.com/gpu.sharing-strategy"
_HOST_PROFILES = ("oci-hostnet",)
_ALIASES = {"ib": "ib-shared or ib-sriov", "infiniband": "ib-shared or ib-sriov", "efa": "aws-efa"}


def check_fabric(job: TrainingJob) -> Iterator[Problem]:
    """Yield problems of `fabric`, and of what else decides how processes reach each other."""
    spec = job.spec
    yield from _check_profile(spec)
    yield from check_interfaces(spec, on_host=_on_host(spec))
    yield from check_nccl(spec, multus=NETWORKS in annotations_of(spec))
    yield from _check_whole_gpus(spec)
    yield from _check_containers(spec)
    yield from _check_service_links(spec)
    yield from _check_mesh(job)


def pod_of(spec: JobSpec) -> dict[str, Any]:
    """Return the pod's own fields in `podTemplate`; empty if there are none or they are no mapping."""
    pod = spec.pod_template.get("spec")
    return pod if isinstance(pod, dict) else {}


def annotations_of(spec: JobSpec) -> dict[str, Any]:
    """Return the pod's annotations in `podTemplate`."""
    metadata = spec.pod_template.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def container_of(spec: JobSpec) -> tuple[int, dict[str, Any]] | None:
    """Return our container in `podTemplate` with its index, or None."""
    found = [(i, entry) for i, entry in _containers(spec, "containers") if entry.get("name") == CONTAINER]
    return found[0] if found else None


def _containers(spec: JobSpec, kind: str) -> list[tuple[int, dict[str, Any]]]:
    entries = pod_of(spec).get(kind)
    found = enumerate(entries if isinstance(entries, list) else [])
    return [(i, entry) for i, entry in found if isinstance(entry, dict)]


def _on_host(spec: JobSpec) -> bool | None:
    """Return whether pods use the node's network; None if only the user's own profile can tell."""
    if pod_of(spec).get("hostNetwork") or spec.fabric.profile in _HOST_PROFILES:
        return True
    return None if spec.fabric.profile_file is not None else False


def _check_profile(spec: JobSpec) -> Iterator[Problem]:
    fabric = spec.fabric
    if fabric.profile is not None and fabric.profile_file is not None:
        hint = "keep `profileFile` for a profile of your own, or `profile` for one of the launcher's"
        text = "and spec.fabric.profile are both given, but exclude each other"
        yield error("spec.fabric.profileFile", text, hint, ["spec.fabric.profile"])
    elif fabric.profile is not None and fabric.profile not in PROFILES:
        meant = _ALIASES.get(fabric.profile)
        known = f"known are {', '.join(PROFILES)}; one of your own goes into spec.fabric.profileFile"
        hint = f"did you mean {meant}?" if meant else suggest_word(fabric.profile, PROFILES) or known
        yield error("spec.fabric.profile", f"is {show(fabric.profile)}, which is no profile", hint)


def _check_whole_gpus(spec: JobSpec) -> Iterator[Problem]:
    if spec.resources.gpu == 0 or spec.world_size == 1:
        return
    hint = "take whole GPUs, or one process: nnodes: 1, nprocPerNode: 1"
    labels = spec.scheduling.node_selector
    product = spec.resources.gpu_product
    places: list[tuple[Path, str | None]] = [
        (("spec", "resources", "gpuProduct"), product),
        (("spec", "scheduling", "nodeSelector", "nvidia.com/gpu.product"), labels.get("nvidia.com/gpu.product")),
    ]  # fmt: skip
    text = f"but the job has {spec.world_size} processes, and NCCL does not work between parts of GPUs"
    related = ["spec.resources.gpu", "spec.topology"]
    for path, value in places:
        if value is not None and _SHARED.search(value):
            yield error(path, f"is {value}, GPUs that several pods share, {text}", hint, related)
    if labels.get(_SHARING, "none") != "none":
        path = ("spec", "scheduling", "nodeSelector", _SHARING)
        yield error(path, f"is {labels[_SHARING]}, {text}", hint, related)


def _check_containers(spec: JobSpec) -> Iterator[Problem]:
    """The kubelet kills pods whose init and main containers both hold GPUs when it restarts."""
    for kind in ("initContainers", "containers"):
        for i, container in _containers(spec, kind):
            if container.get("name") == CONTAINER and kind == "containers":
                yield from _check_visible_devices((*_POD, kind, i), container)
            elif _asks_for(container, spec.resources.gpu_resource):
                text = f"asks for {spec.resources.gpu_resource}, which only our container may"
                hint = "remove it; work that needs a GPU goes to the start of your script"
                yield error((*_POD, kind, i, "resources"), text, hint)


def _asks_for(container: dict[str, Any], resource: str) -> bool:
    resources = container.get("resources")
    parts = [resources.get(key) for key in ("limits", "requests")] if isinstance(resources, dict) else []
    return any(isinstance(part, dict) and part.get(resource) not in (None, 0, "0") for part in parts)


def _check_visible_devices(path: Path, container: dict[str, Any]) -> Iterator[Problem]:
    env = container.get("env")
    for i, variable in enumerate(env if isinstance(env, list) else []):
        if isinstance(variable, dict) and variable.get("name") == "NVIDIA_VISIBLE_DEVICES":
            hint = "remove it; spec.resources.gpu is how many GPUs a pod gets"
            text = "sets NVIDIA_VISIBLE_DEVICES, which would give pods GPUs that the scheduler gave to others"
            yield error((*path, "env", i), text, hint)


def _check_service_links(spec: JobSpec) -> Iterator[Problem]:
    if pod_of(spec).get("enableServiceLinks") is True:
        text = "is true: a Service called `master` in the namespace would set MASTER_PORT to tcp://..."
        yield error((*_POD, "enableServiceLinks"), text, "remove it; pods find each other by name")


def _check_mesh(job: TrainingJob) -> Iterator[Problem]:
    if job.spec.topology.nnodes == 1:
        return
    metadata = job.spec.pod_template.get("metadata")
    template = metadata if isinstance(metadata, dict) else {}
    places: list[tuple[Path, Any]] = [
        (("metadata", "labels"), job.metadata.labels),
        (("metadata", "annotations"), job.metadata.annotations),
        (("spec", "podTemplate", "metadata", "labels"), template.get("labels")),
        (("spec", "podTemplate", "metadata", "annotations"), template.get("annotations")),
    ]
    for path, entries in places:
        if isinstance(entries, dict) and entries.get(_ISTIO) == "true":
            text = "puts Istio's proxy between the pods, through which neither gloo nor NCCL works"
            yield pod_warning((*path, _ISTIO), text, 'write "false", or remove it')
