"""NCCL, libfabric and torch variables that hide a fault, slow a job down, or cannot work."""

from collections.abc import Callable, Iterator, Mapping

from ddpk8s.spec.job import JobSpec
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error, warning
from ddpk8s.spec.values import show

_MOST_SOCKETS = 64
_FAMILIES = ("AF_INET", "AF_INET6")
_REMOVE = "remove it"
_ON = ("1", "true", "yes", "on")

# Name -> when it is wrong, what is then so, and what to do.
_RULES: Mapping[str, tuple[Callable[[str], bool], str, str]] = {
    "NCCL_P2P_DISABLE": (
        lambda value: value in _ON,
        "switches NVLink and PCIe between the GPUs of a node off",
        "remove it; it is for finding out whether ACS or the IOMMU makes a job hang, which is then to be mended",
    ),
    "NCCL_SHM_DISABLE": (
        lambda value: value in _ON,
        "sends what goes through /dev/shm over the network",
        "remove it and set spec.resources.sharedMemory, if /dev/shm was too small",
    ),
    "NCCL_NVLS_ENABLE": (
        lambda value: value == "0",
        "switches reductions inside NVSwitch off, which makes an all-reduce of one node slower",
        "remove it when the node's fabric manager is mended; CUDA error 401 comes from there",
    ),
    "NCCL_IGNORE_DISABLED_P2P": (
        lambda value: value != "0",
        "hides that NVLink of a node is broken",
        "remove it, and take the node out of service",
    ),
    "NCCL_ALGO": (lambda _: True, "fixes what NCCL chooses better by size and shape", _REMOVE),
    "NCCL_PROTO": (lambda _: True, "fixes what NCCL chooses better by size and shape", _REMOVE),
    "NCCL_HOSTID": (
        lambda _: True,
        "makes NCCL take all pods for one node, since all have the same",
        "remove it; one pod with all GPUs of a node needs nothing of the kind",
    ),
    "NCCL_MULTI_RANK_GPU_ENABLE": (
        lambda value: value != "0",
        "lets two processes share a GPU, which is an experiment of NCCL's",
        "give each process a GPU: nprocPerNode no larger than gpu",
    ),
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": (
        lambda value: value == "0",
        "lets a job with a broken connection hang for good",
        "remove it; torchrun sets it",
    ),
    "NCCL_ASYNC_ERROR_HANDLING": (lambda _: True, "is an old name", "write TORCH_NCCL_... or remove it"),
    "TORCH_DISTRIBUTED_DEBUG": (
        lambda value: value.upper() == "DETAIL",
        "checks every collective twice and makes training slow",
        "remove it when you have found what you look for",
    ),
    "LD_PRELOAD": (lambda _: True, "loads a library into every process, the agent and the shell too", _REMOVE),
    "FI_EFA_USE_HUGE_PAGE": (
        lambda value: value in _ON,
        "makes forks of data loaders fail with `Cannot allocate memory` where huge pages are few",
        "remove it, or set parameters.hugepages of the profile aws-efa",
    ),
    "FI_EFA_FORK_SAFE": (lambda _: True, "is no longer needed", _REMOVE),
    "RDMAV_FORK_SAFE": (lambda _: True, "must not be set with current EFA software", _REMOVE),
    "RDMAV_HUGEPAGES_SAFE": (lambda _: True, "must not be set with current EFA software", _REMOVE),
}  # fmt: skip


def check_nccl(spec: JobSpec, *, multus: bool) -> Iterator[Problem]:
    """Yield problems of variables in `env`.

    Args:
        spec: The job's specification.
        multus: Whether the pod template brings more networks into pods.
    """
    for name, (is_wrong, text, hint) in _RULES.items():
        value = spec.env.get(name)
        if value is not None and is_wrong(value):
            path: Path = ("spec", "env", name)
            is_whole = text.startswith(("is ", "must "))
            yield warning(path, text if is_whole else f"is {show(value)}, which {text}", hint)
    yield from _check_family(spec.env)
    yield from _check_sockets(spec.env)
    if multus and "NCCL_IB_GID_INDEX" in spec.env:
        text = "is set for all pods, but with networks of multus the index differs from pod to pod"
        hint = "remove it; NCCL 2.21 and newer find the GID, by NCCL_IB_ADDR_RANGE where there are several"
        yield warning("spec.env.NCCL_IB_GID_INDEX", text, hint)


def _check_family(env: Mapping[str, str]) -> Iterator[Problem]:
    family = env.get("NCCL_SOCKET_FAMILY")
    if family is not None and family not in _FAMILIES:
        text = f"is {show(family)}, but must be one of {', '.join(_FAMILIES)}"
        yield error(
            "spec.env.NCCL_SOCKET_FAMILY", text, "remove it, unless the cluster has IPv6 only: AF_INET6"
        )


def _check_sockets(env: Mapping[str, str]) -> Iterator[Problem]:
    names = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
    given = [(name, env[name]) for name in names if name in env]
    for name, value in given:
        if not value.isascii() or not value.isdecimal() or not 1 <= len(value) <= 4 or int(value) == 0:
            text = f"is {show(value)}, but must be a whole number from 1 to {_MOST_SOCKETS}"
            yield error(f"spec.env.{name}", text)
            return
    product = 1
    for _, value in given:
        product *= int(value)
    if product > _MOST_SOCKETS:
        terms = " times ".join(f"spec.env.{name}" for name, _ in reversed(given[:-1]))
        text = f"is {given[-1][1]}" + (f", {product} sockets with {terms}" if terms else "")
        hint = "4 and 4 do for 100 Gbit/s; left alone, NCCL knows those of AWS and Google"
        yield error(f"spec.env.{given[-1][0]}", f"{text}, but NCCL takes {_MOST_SOCKETS} at most", hint)
