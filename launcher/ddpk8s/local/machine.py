"""Cores and GPUs of this machine, as far as they can be known without torch."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """What a training can use here."""

    cores: int
    gpus: int


def this_machine(environment: Mapping[str, str] = os.environ) -> Machine:
    """Return what this process may use: its CPU affinity counts, and CUDA_VISIBLE_DEVICES."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(cores, _count_gpus(environment.get("CUDA_VISIBLE_DEVICES")))


def _count_gpus(visible: str | None) -> int:
    nodes = sum(1 for node in Path("/dev").iterdir() if re.fullmatch(r"nvidia\d+", node.name))
    if visible is None or not nodes:
        return nodes
    return len([entry for entry in visible.split(",") if entry.strip() not in ("", "-1")])
