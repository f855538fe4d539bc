"""What the pod template may not say, since other fields of the job file say it."""

from collections.abc import Iterator, Mapping
from typing import Any

from ddpk8s.spec.checks.environment import check_owner
from ddpk8s.spec.job import JobSpec
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error
from ddpk8s.spec.values import show

CONTAINER = "pytorch"
_OWN_PREFIX = "ddpk8s-"
_OWN_PATHS = ("/etc/ddpk8s", "/opt/ddpk8s", "/dev/shm", "/dev/termination-log")
_OWN_LABELS = ("ddpk8s.dev/", "batch.kubernetes.io/", "training.kubeflow.org/")
_QUEUE = "kueue.x-k8s.io/queue-name"
_CONTAINER_FIELDS = {
    "image": ("set by spec.image", "remove it here"),
    "imagePullPolicy": ("set by spec.imagePullPolicy", "remove it here"),
    "command": ("the agent's own", "spec.entrypoint is where your script and its arguments are set"),
    "args": ("the agent's own", "spec.entrypoint is where your script and its arguments are set"),
    "terminationMessagePath": ("the agent's own", "remove it here"),
    "terminationMessagePolicy": ("the agent's own", "remove it here"),
}
_HINT = "remove it here"


def check_conflicts(spec: JobSpec) -> Iterator[Problem]:
    """Yield parts of `podTemplate` that would undo what other fields say, or what the agent relies on."""
    root: Path = ("spec", "podTemplate")
    metadata, pod = (_mapping(spec.pod_template.get(key)) for key in ("metadata", "spec"))
    yield from _check_labels((*root, "metadata", "labels"), _mapping(metadata.get("labels")))
    yield from _check_volumes(spec, (*root, "spec", "volumes"), _entries(pod.get("volumes")))
    for i, container in _entries(pod.get("containers")):
        if container.get("name") == CONTAINER:
            yield from _check_container(spec, (*root, "spec", "containers", i), container)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _entries(value: Any) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the mappings in a list with their indexes."""
    found = enumerate(value if isinstance(value, list) else [])
    return [(i, entry) for i, entry in found if isinstance(entry, dict)]


def _check_labels(path: Path, labels: Mapping[str, Any]) -> Iterator[Problem]:
    for key in labels:
        if key == _QUEUE:
            yield error((*path, key), "is set by spec.scheduling.queue", _HINT)
        elif key.startswith(_OWN_LABELS):
            yield error((*path, key), "is the launcher's own or Kubernetes'", "choose another prefix")


def _check_volumes(
    spec: JobSpec, path: Path, volumes: list[tuple[int, Mapping[str, Any]]]
) -> Iterator[Problem]:
    known = {volume.name: i for i, volume in enumerate(spec.storage)}
    for i, volume in volumes:
        name = volume.get("name")
        if isinstance(name, str) and name.startswith(_OWN_PREFIX):
            text = f"is {show(name)}, but names with {_OWN_PREFIX} are the launcher's"
            hint = "rename it; spec.resources.sharedMemory is the size of /dev/shm"
            yield error((*path, i, "name"), text, hint)
        elif isinstance(name, str) and name in known:
            other = f"spec.storage[{known[name]}]"
            yield error(
                (*path, i, "name"), f"is {show(name)}, the volume of {other}", "keep one of them", [other]
            )


def _check_container(spec: JobSpec, path: Path, container: Mapping[str, Any]) -> Iterator[Problem]:
    for key in container:
        if key in _CONTAINER_FIELDS:
            owner, hint = _CONTAINER_FIELDS[key]
            yield error((*path, key), f"is {owner}", hint)
    yield from _check_env(spec, (*path, "env"), _entries(container.get("env")))
    resources = _mapping(container.get("resources"))
    for kind in ("requests", "limits"):
        yield from _check_amounts(spec, (*path, "resources", kind), _mapping(resources.get(kind)))
    yield from _check_mounts(spec, (*path, "volumeMounts"), _entries(container.get("volumeMounts")))


def _check_env(spec: JobSpec, path: Path, env: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Problem]:
    secrets = {secret.env: i for i, secret in enumerate(spec.secrets)}
    for i, variable in env:
        name, here = variable.get("name"), (*path, i, "name")
        if not isinstance(name, str):
            continue
        for problem in check_owner(here, name):
            text = problem.message.partition(" ")[2]
            yield error(here, f"is {name}, which {text}", problem.hint)
        if name in spec.env:
            yield error(here, f"is {name}, which spec.env sets too", "keep one of them", [f"spec.env.{name}"])
        elif name in secrets:
            other = f"spec.secrets[{secrets[name]}]"
            yield error(here, f"is {name}, which {other} sets too", "keep one of them", [other])


def _check_amounts(spec: JobSpec, path: Path, amounts: Mapping[str, Any]) -> Iterator[Problem]:
    fields = {"cpu": "spec.resources.cpu", "memory": "spec.resources.memory"}
    if spec.resources.gpu:
        fields[spec.resources.gpu_resource] = "spec.resources.gpu"
    if path[-1] == "limits":
        fields["cpu"] = "spec.resources.guaranteed"
    for name in amounts:
        if name in fields:
            yield error((*path, name), f"is set by {fields[name]}", f"set {fields[name]} instead")


def _check_mounts(
    spec: JobSpec, path: Path, mounts: list[tuple[int, Mapping[str, Any]]]
) -> Iterator[Problem]:
    known = {volume.mount_path: i for i, volume in enumerate(spec.storage)}
    for i, mount in mounts:
        place, here = mount.get("mountPath"), (*path, i, "mountPath")
        if not isinstance(place, str):
            continue
        place = place.rstrip("/") or "/"
        if any(place == own or place.startswith(f"{own}/") for own in _OWN_PATHS):
            hint = "set spec.resources.sharedMemory" if place == "/dev/shm" else "choose another path"
            yield error(here, f"is {show(place)}, which is the launcher's own", hint)
        elif place in known:
            other = f"spec.storage[{known[place]}]"
            yield error(here, f"is {show(place)}, where {other} is mounted", "keep one of them", [other])
