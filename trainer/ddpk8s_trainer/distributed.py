"""The gang of processes: who this rank is, and how ranks agree."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.constants import default_pg_timeout

from ddpk8s_trainer import errors
from ddpk8s_trainer.errors import ConfigurationMistake, TrainerError

T = TypeVar("T")

HANG_VARIABLE = "DDPK8S_HANG_TIMEOUT"
# Time for the agent to find a hang and to ask the ranks for their stacks, before a collective gives up by itself.
_HANG_MARGIN = timedelta(seconds=300)
# Rank 0 may tokenise for hours while the others wait.
_PREPARE_TIMEOUT = timedelta(days=2)
# Collectives count in milliseconds, and no wait for a hang takes this long.
_LONGEST = timedelta(days=365)


@dataclass(frozen=True)
class Gang:
    """This process's place among all.

    Attributes:
        rank: Global rank, from 0.
        world_size: Number of processes.
        local_rank: Rank on this node.
        device: Where this rank computes.
        control: A gloo group for decisions and objects; it works beside NCCL and waits for days.
    """

    rank: int
    world_size: int
    local_rank: int
    device: torch.device
    control: dist.ProcessGroup

    @property
    def is_main(self) -> bool:
        """Whether this is global rank 0."""
        return self.rank == 0

    def sum(self, values: list[float]) -> list[float]:
        """Return the sums over all ranks of a short list of numbers (one all-reduce, float64)."""
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def gather(self, value: T) -> list[T]:
        """Return every rank's `value`, in the order of ranks."""
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value, group=self.control)
        return values

    def decide(self, function: Callable[[], T]) -> T:
        """Run `function` in rank 0 and return its value on all ranks.

        Raises:
            TrainerError: what `function` raised; the other ranks raise the same without reporting it again.
        """
        answer: list[Any] = [None]
        failure: TrainerError | None = None
        if self.is_main:
            try:
                answer = [("ok", function())]
            except TrainerError as error:
                failure = error
                answer = [("error", error.reason, error.message, error.hint)]
            except Exception:
                dist.broadcast_object_list(
                    [("error", "TrainingFailed", "rank 0 failed", None)], 0, self.control
                )
                raise
        dist.broadcast_object_list(answer, 0, self.control)
        if failure:
            raise failure
        kind, *content = answer[0]
        if kind == "ok":
            return content[0]  # type: ignore[no-any-return]
        name, message, hint = content
        echo: TrainerError = getattr(errors, name)(message, hint)
        echo.secondary = True
        raise echo


def collective_timeout() -> timedelta:
    """Return how long a collective waits: longer than the agent, which names the rank that hangs.

    Raises:
        ConfigurationMistake: the environment variable is not a number of seconds.
    """
    text = os.environ.get(HANG_VARIABLE)
    if not text:
        return default_pg_timeout
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < _LONGEST.total_seconds():
        raise ConfigurationMistake(
            f"{HANG_VARIABLE} is {text!r}, which is not a number of seconds up to {_LONGEST.days} days",
            f"unset it, or set for example {HANG_VARIABLE}=1200; in a job file it is failurePolicy.hangTimeout",
        )
    return max(default_pg_timeout, timedelta(seconds=seconds) + _HANG_MARGIN)


def join_gang() -> Gang:
    """Join the process group that torchrun's environment describes; without torchrun, a group of one.

    Raises:
        ConfigurationMistake: more processes on this node than GPUs, or the hang timeout is no number.
    """
    timeout = collective_timeout()
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        os.environ.setdefault(name, value)
    local_rank = int(os.environ["LOCAL_RANK"])
    device = _pick_device(local_rank)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    if "MASTER_ADDR" in os.environ:
        dist.init_process_group(backend, timeout=timeout)
    else:
        dist.init_process_group(
            backend, timeout=timeout, store=torch._C._distributed_c10d.HashStore(), rank=0, world_size=1
        )
    control = _group(dist.new_group(backend="gloo", timeout=max(_PREPARE_TIMEOUT, timeout)))
    return Gang(dist.get_rank(), dist.get_world_size(), local_rank, device, control)


def _group(group: object) -> dist.ProcessGroup:
    assert isinstance(group, dist.ProcessGroup)  # this rank is in it
    return group


def leave_gang() -> None:
    """Destroy the process group; without it gloo aborts at exit."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _pick_device(local_rank: int) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    count = torch.cuda.device_count()
    if local_rank >= count:
        raise ConfigurationMistake(
            f"local rank {local_rank} has no GPU: this node shows {count}",
            "set spec.topology.nprocPerNode to the number of GPUs of a pod (spec.resources.gpu)",
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device
