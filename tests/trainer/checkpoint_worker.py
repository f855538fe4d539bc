"""Ranks that save and load checkpoints: `python -m tests.trainer.checkpoint_worker DIRECTORY SCENARIO:WORLD ...`.

Each scenario runs in fresh processes, forked from this one so that torch is imported once; each rank leaves what it
saw in `DIRECTORY/<scenario>-<world>-<rank>.json`.
"""

import functools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from ddpk8s_trainer.checkpoint import CheckpointManager
from ddpk8s_trainer.errors import CheckpointMistake

State = dict[str, Any]
MEBI = 1 << 20


def make_state(step: int, mebibytes: int = 2) -> State:
    """A replicated state as of `step`, of about that size."""
    generator = torch.Generator().manual_seed(step)
    tensors = {f"w{n}": torch.randn(MEBI // 32, generator=generator) for n in range(8 * mebibytes)}
    return {
        "model": tensors,
        "count": torch.tensor(step),
        "text": f"step {step}",
        "list": [step, {"a": step}],
    }


def same(left: object, right: object) -> bool:
    """Whether two states are equal bit for bit."""
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


def open_manager(directory: Path, **settings: Any) -> CheckpointManager:
    settings = {"keep": 2, "asynchronous": True, "resume": "run", "report": lambda _: None} | settings
    return CheckpointManager(directory, "run-1", **settings)


def sharded(step: int) -> torch.Tensor:
    """A tensor of 30 rows spread over the ranks."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    rows = torch.arange(90, dtype=torch.float32).reshape(30, 3) + step
    return distribute_tensor(rows, mesh, [Shard(0)])


def gathered(tensor: Any) -> torch.Tensor:
    whole = tensor.redistribute(placements=[Replicate()]).to_local()
    assert isinstance(whole, torch.Tensor)
    return whole


def save(directory: Path) -> State:
    """Save in the background while the ranks exchange gradients, as a training does."""
    rank = dist.get_rank()
    manager = open_manager(directory / "job")
    seen: State = {"found": manager.open() is not None, "saved": []}
    for step in (1, 2, 3):
        own = {"rank": rank, "draw": torch.full((3,), float(rank * 10 + step))}
        state = {**make_state(step, 8), "sharded": sharded(step), "per_rank": own}
        manager.save(step, state, {"step": step}, best=step == 1)
        for tensor in state["model"].values():  # the next steps change everything at once
            tensor.mul_(2)
            dist.all_reduce(tensor)
        seen["saved"] += [(saved.step, saved.error, saved.bytes) for saved in manager.poll()]
    seen["saved"] += [(saved.step, saved.error, saved.bytes) for saved in manager.finish()]
    seen["best"] = str(manager.best)
    manager.close()
    return seen


def load(directory: Path) -> State:
    """Find and load what `save` left, with however many ranks there are."""
    manager = open_manager(directory / "job")
    found = manager.open()
    assert found is not None
    given = {**make_state(9, 8), "sharded": sharded(0), "per_rank": None}
    loaded = manager.load(found, given)
    rows, own = gathered(loaded.pop("sharded")), loaded.pop("per_rank")
    wrong = {**make_state(9, 8), "extra": dist.get_rank()} if dist.get_rank() == 0 else make_state(9, 8)
    wrong["model"]["w0"] = torch.zeros(2)
    seen = {
        "step": found.step,
        "metadata": found.metadata,
        "world_size": found.world_size,
        "same": same(loaded, make_state(3, 8)),
        "same_rows": torch.equal(rows, torch.arange(90, dtype=torch.float32).reshape(30, 3) + 3),
        "per_rank": None if own is None else [own["rank"], own["draw"].tolist()],
        "expects_per_rank": found.per_rank,
        "mistake": mistake(lambda: manager.load(found, wrong)),
    }
    manager.close()
    return seen


def mistake(action: Callable[[], object]) -> str | None:
    try:
        action()
    except CheckpointMistake as error:
        return str(error)
    return None


def faults(directory: Path) -> State:
    """Saves that fail on one rank or all, each followed by one that succeeds; `directory` is a small volume."""
    rank, job = dist.get_rank(), directory / "job"
    seen: State = {"errors": {}, "after": {}}
    manager = open_manager(job, keep=1)
    manager.open()

    def attempt(name: str, step: int, state: State | None = None) -> None:
        manager.save(step, state or make_state(step), {"step": step})
        [saved] = manager.finish()
        seen["errors"][name] = saved.error
        dist.barrier()
        seen["after"][name] = sorted(path.name for path in job.iterdir()) if job.exists() else None
        dist.barrier()

    def on_rank_0(action: Callable[[], object]) -> None:
        if rank == 0:
            action()
        dist.barrier()

    attempt("none", 1)
    if rank == 1:
        limit_file_size(MEBI // 2)
    attempt("file too large on one rank", 2)
    limit_file_size(resource.RLIM_INFINITY)
    ballast = directory / "ballast"
    on_rank_0(lambda: fill(ballast, leave=MEBI))
    attempt("disk full", 3)
    on_rank_0(ballast.unlink)
    attempt("space again", 4)
    on_rank_0(lambda: job.rename(directory / "gone"))
    attempt("directory gone", 5)
    on_rank_0(lambda: (directory / "gone").rename(job))
    on_rank_0(lambda: remount(directory, "ro"))
    attempt("read-only", 6)
    seen["mistake"] = mistake(lambda: open_manager(job).open())
    on_rank_0(lambda: remount(directory, "rw"))
    attempt("no pickle", 7, {**make_state(7), "x": threading.Lock() if rank == 1 else 1})
    attempt("odd type", 8, {**make_state(8), "x": torch.eye(3).to_sparse() if rank == 1 else torch.eye(3)})
    attempt("recovered", 9)
    found = manager.open()
    seen["found"] = found.step if found else None
    seen["same"] = found is not None and same(manager.load(found, make_state(1)), make_state(9))
    manager.close()
    return seen


def limit_file_size(size: int) -> None:
    """Writing more fails with EFBIG (Python ignores the signal that would come with it)."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def fill(path: Path, leave: int) -> None:
    """Write a file that leaves this much free."""
    status = os.statvfs(path.parent)
    path.write_bytes(bytes(status.f_bavail * status.f_frsize - leave))


def remount(directory: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(directory)], check=True)


def rank_main(scenario: str, directory: Path, world: int, rank: int, port: int) -> None:
    """What a forked process does; it never returns."""
    code = 1
    try:
        torch.set_num_threads(1)
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        dist.init_process_group("gloo")
        seen = {"save": save, "load": load, "faults": faults}[scenario](directory)
        (directory / f"{scenario}-{world}-{rank}.json").write_text(json.dumps(seen), encoding="utf-8")
        dist.destroy_process_group()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def fork_gang(world: int, body: Callable[[int, int], None]) -> list[int]:
    """Start `body(rank, port)` in so many processes; their ids."""
    port, children = free_port(), []
    for rank in range(world):
        child = os.fork()
        if child == 0:
            body(rank, port)
        children.append(child)
    return children


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    directory = Path(sys.argv[1])
    for argument in sys.argv[2:]:
        scenario, world = argument.split(":")
        children = fork_gang(int(world), functools.partial(rank_main, scenario, directory, int(world)))
        codes = [os.waitpid(child, 0)[1] for child in children]
        if any(codes):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
