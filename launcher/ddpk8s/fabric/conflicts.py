"""What a job sets itself against what its profile adds: environment, volumes, nodes and users."""

from collections.abc import Iterator
from typing import Any

from ddpk8s.fabric.judge import PINS
from ddpk8s.fabric.lines import Lines
from ddpk8s.spec.checks.fabric import NETWORKS, container_of, pod_of
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error, warning
from ddpk8s.spec.values import show

_LIBRARIES = "LD_LIBRARY_PATH"
_INFINIBAND = "/dev/infiniband"
_ALL_BUT = "^lo,docker,veth,cni,cali,flannel,pod-id-link"


def check_conflicts(lines: Lines) -> Iterator[Problem]:
    """Yield what a job sets against its profile."""
    yield from _check_pins(lines)
    yield from _check_libraries(lines)
    yield from _check_mounts(lines)
    yield from _check_resources(lines)
    yield from _check_nodes(lines)
    yield from _check_user(lines)
    yield from _check_gid(lines)
    yield from _check_host_network(lines)


def _check_pins(lines: Lines) -> Iterator[Problem]:
    """What makes a job stop where its transport is missing is the user's to undo, but not unseen."""
    env, profile = lines.job.spec.env, lines.profile
    if not profile.rdma or lines.job.spec.topology.nnodes == 1:
        return
    for name, line in lines.mapping(profile.env).items():
        if name not in (*PINS, "NCCL_NET_PLUGIN", "NCCL_IB_DISABLE"):
            continue
        if name in env and env[name] != line.value:
            text = f"is {show(env[name])}, in place of {show(line.value)} of the profile {profile.name}: "
            text += "without RDMA the job may crawl over sockets and say nothing"
            yield warning(("spec", "env", name), text, "remove it, or take the profile tcp")


def _check_libraries(lines: Lines) -> Iterator[Problem]:
    given = lines.job.spec.env.get(_LIBRARIES)
    if given is None:
        return
    lost = [path for path in lines.library_paths() if path not in given.split(":")]
    if lost:
        hint = f"add {':'.join(lost)} to it, or remove it; the image's own value is kept"
        text = f"leaves out {' and '.join(lost)}, where the profile {lines.profile.name} finds its plugin"
        yield error(("spec", "env", _LIBRARIES), text, hint)


def _check_mounts(lines: Lines) -> Iterator[Problem]:
    taken = sorted({mount["mountPath"] for mount in lines.items(lines.profile.mounts)})
    for i, volume in enumerate(lines.job.spec.storage):
        for path in taken:
            if volume.mount_path == path or volume.mount_path.startswith(f"{path}/"):
                text = f"is {show(volume.mount_path)}, but the profile {lines.profile.name} mounts {path}"
                yield error(f"spec.storage[{i}].mountPath", text, "choose another path, as in /data")


def _check_resources(lines: Lines) -> Iterator[Problem]:
    spec, resources = lines.job.spec, lines.values_in(lines.profile.resources)
    field: Path = ("spec", "resources")
    if any(name.startswith("hugepages-") for name in resources) and not (
        spec.resources.cpu or spec.resources.memory
    ):
        hint = "set spec.resources.memory"
        yield error(field, "has neither cpu nor memory, which Kubernetes wants with huge pages", hint)
    devices = [name for name in resources if "/" in name]
    if not devices:
        return
    for path, volume in _host_paths(lines):
        if volume == _INFINIBAND or volume.startswith(f"{_INFINIBAND}/"):
            text = (
                f"is {volume}, but the profile {lines.profile.name} asks for {devices[0]}, which brings the "
            )
            text += "devices that the pod may use; NCCL would try to open the others too"
            yield error(path, text, "remove the volume")


def _host_paths(lines: Lines) -> Iterator[tuple[Path, str]]:
    for i, volume in enumerate(lines.job.spec.storage):
        if volume.host_path is not None:
            yield ("spec", "storage", i, "hostPath"), volume.host_path
    volumes = pod_of(lines.job.spec).get("volumes")
    for i, entry in enumerate(volumes if isinstance(volumes, list) else []):
        host_path = entry.get("hostPath") if isinstance(entry, dict) else None
        if isinstance(host_path, dict) and isinstance(host_path.get("path"), str):
            path: Path = ("spec", "podTemplate", "spec", "volumes", i, "hostPath", "path")
            yield path, host_path["path"].rstrip("/")


def _check_nodes(lines: Lines) -> Iterator[Problem]:
    given = lines.job.spec.scheduling.node_selector
    for key, value in lines.node_selector().items():
        if key in given and given[key] != value:
            text = f"is {show(given[key])}, but the profile {lines.profile.name} is for nodes with {value}"
            yield error(("spec", "scheduling", "nodeSelector", key), text, f"write {key}: {value}")


def _check_user(lines: Lines) -> Iterator[Problem]:
    capabilities = [line.value for line in lines.texts(lines.profile.capabilities)]
    if not capabilities:
        return
    root: Path = ("spec", "podTemplate", "spec")
    places: list[tuple[Path, Any]] = [(root, pod_of(lines.job.spec))]
    if (found := container_of(lines.job.spec)) is not None:
        places.append(((*root, "containers", found[0]), found[1]))
    for path, place in places:
        context = place.get("securityContext")
        user = context.get("runAsUser") if isinstance(context, dict) else None
        if isinstance(user, int) and user > 0:
            text = f"is {user}, but {capabilities[0]}, which the profile {lines.profile.name} adds, works for root only"
            hint = "remove it, unless the nodes' container runtime has LimitMEMLOCK=infinity"
            yield warning((*path, "securityContext", "runAsUser"), text, hint)


def _check_gid(lines: Lines) -> Iterator[Problem]:
    if "NCCL_IB_GID_INDEX" in lines.job.spec.env and NETWORKS in lines.profile.annotations:
        hint = "remove it; NCCL 2.21 and newer find the GID, by NCCL_IB_ADDR_RANGE where there are several"
        text = "is set for all pods, but with networks of multus the index differs from pod to pod"
        yield warning("spec.env.NCCL_IB_GID_INDEX", text, hint)


def _check_host_network(lines: Lines) -> Iterator[Problem]:
    """A pod's interface is eth0; a node's has a name of its own, from machine to machine another."""
    name = "NCCL_SOCKET_IFNAME" if lines.profile.devices == "gpu" else "GLOO_SOCKET_IFNAME"
    line = lines.mapping(lines.profile.env).get(name)
    if line is None or name in lines.job.spec.env or "interface" in lines.job.spec.fabric.parameters:
        return
    if pod_of(lines.job.spec).get("hostNetwork") is True and not lines.holds(lines.profile.host_network):
        hint = f"set {name} in spec.env, for NCCL for example {_ALL_BUT}, and GLOO_SOCKET_IFNAME to one name"
        text = f"is true, but the profile {lines.profile.name} takes {line.value}, which nodes seldom have"
        yield warning("spec.podTemplate.spec.hostNetwork", text, hint)
