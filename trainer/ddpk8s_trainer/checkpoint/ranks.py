"""How the ranks of a job agree.

Collectives run in the caller's thread only, over a gloo group of our own, so that they neither mix with the
training's collectives nor need a GPU. The background thread talks over the job's store, which blocks nobody.
"""

import itertools
import json
import threading
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, PrefixStore, Store

from ddpk8s_trainer.distributed import collective_timeout

T = TypeVar("T")

# Managers made one after the other must not read each other's mail. Every rank makes them in the same order.
_instances = itertools.count()


class AbandonedError(Exception):
    """Waiting for another rank was given up because the manager was closed."""


class Ranks:
    """All ranks of the job; works without `torch.distributed` too, as one rank."""

    group: dist.ProcessGroup | None

    def __init__(self) -> None:
        store: Store
        if dist.is_available() and dist.is_initialized():
            self.rank, self.world = dist.get_rank(), dist.get_world_size()
            self.group = cast(dist.ProcessGroup, dist.new_group(backend="gloo", timeout=collective_timeout()))
            store = dist.distributed_c10d._get_default_store()
        else:
            self.rank, self.world, self.group = 0, 1, None
            store = HashStore()
        self._store = PrefixStore(f"ddpk8s/checkpoint/{next(_instances)}", store)

    def gather(self, value: T) -> list[T]:
        """Everybody's value, in the order of the ranks, on every rank. Collective."""
        if self.group is None:
            return [value]
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value, group=self.group)
        return values

    def any(self, *flags: bool) -> list[bool]:
        """For each flag, whether any rank has it set. Collective, one message."""
        if self.group is None:
            return list(flags)
        numbers = torch.tensor(flags, dtype=torch.uint8)
        dist.all_reduce(numbers, op=dist.ReduceOp.MAX, group=self.group)
        return [bool(number) for number in numbers.tolist()]

    def broadcast(self, value: T) -> T:
        """Rank 0's value on every rank. Collective."""
        if self.group is None:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self.group)
        return box[0]

    def scatter(self, values: list[T] | None) -> T:
        """Each rank its own item of rank 0's list. Collective."""
        if self.group is None:
            assert values is not None
            return values[0]
        box: list[Any] = [None]
        dist.scatter_object_list(box, values, src=0, group=self.group)
        item: T = box[0]
        return item

    def post(self, key: str, message: dict[str, Any]) -> None:
        """Leave a message in the store. Safe in any thread."""
        self._store.set(key, json.dumps(message))

    def take(self, key: str, stop: threading.Event, longest_pause: float = 0.1) -> dict[str, Any]:
        """Wait for a message in the store. Safe in any thread.

        It asks again and again rather than blocking in the store's client, which other threads use too.

        Raises:
            AbandonedError: `stop` was set.
        """
        pause = 0.002
        while not self._store.check([key]):
            if stop.wait(pause):
                raise AbandonedError
            pause = min(pause * 1.5, longest_pause)
        message: dict[str, Any] = json.loads(self._store.get(key))
        return message

    def forget(self, keys: list[str]) -> None:
        """Delete messages everybody has read."""
        for key in keys:
            self._store.delete_key(key)

    def close(self) -> None:
        """Leave the gloo group."""
        if self.group is not None and dist.is_initialized():
            dist.destroy_process_group(self.group)
        self.group = None
