"""Cores, GPUs and free ports of this machine, as far as they can be known without torch."""

import os
import random
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ddpk8s.errors import DdpError

_QUIET_PORTS = range(20_000, 32_000)


@dataclass(frozen=True)
class Machine:
    """What a training can use here."""

    cores: int
    gpus: int


def this_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """Return what this process may use: its CPU affinity counts, and CUDA_VISIBLE_DEVICES."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(cores, _count_gpus(environment.get("CUDA_VISIBLE_DEVICES")))


def gpu_share(node: int, each: int, visible: str | None) -> str:
    """Return CUDA_VISIBLE_DEVICES of a node that has `each` GPUs, as its pod would; `visible` is ours.

    Without it every node's rank 0 would take the same GPU, which NCCL refuses.
    """
    first = node * each
    if visible is None:
        return ",".join(map(str, range(first, first + each)))
    return ",".join(_listed(visible)[first : first + each])


def free_port(*, but: int | None = None) -> int:
    """Return a TCP port that nobody listens on at this moment, another one than `but`.

    One below those that the kernel hands out, if possible: workers take many of these, and the port must be
    free again when the agent that listens on it is replaced.

    Raises:
        DdpError: there is none.
    """
    for wanted in (*random.sample(_QUIET_PORTS, 50), 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe, suppress(OSError):
            probe.bind(("", wanted))
            port = int(probe.getsockname()[1])
            if port != but:
                return port
    raise DdpError("no TCP port is free on this machine")


def _listed(visible: str) -> list[str]:
    return [entry.strip() for entry in visible.split(",") if entry.strip() not in ("", "-1")]


def _count_gpus(visible: str | None) -> int:
    nodes = sum(1 for node in Path("/dev").iterdir() if re.fullmatch(r"nvidia\d+", node.name))
    if visible is None or not nodes:
        return nodes
    return len(_listed(visible))
