"""What the processes of a gang find in their environment."""

import os
import socket
from pathlib import Path

from ddpk8s_agent.command import worker_environment
from ddpk8s_agent.plan import Command, Plan

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = 2
OURS = ("ours", "saving")


def environments(contender: str, scratch: Path) -> list[dict[str, str]]:
    """Return the environment of each rank: as torchrun sets it, for our own trainer on top of what our agent sets."""
    base = _from_agent(scratch) if contender in OURS else dict(os.environ)
    port = str(_free_port())
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return [
        base
        | {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(PROCESSES),
            "LOCAL_WORLD_SIZE": str(PROCESSES),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": "1",  # there are as many processes as cores
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": path,
        }
        for rank in range(PROCESSES)
    ]


def _from_agent(scratch: Path) -> dict[str, str]:
    plan = Plan(
        job="benchmark",
        run_id="benchmark",
        nnodes=1,
        node_rank=0,
        nproc_per_node=PROCESSES,
        master_addr="127.0.0.1",
        master_port=None,
        command=Command("ddpk8s_trainer", None, (), None),
        env={},
        max_restarts=0,
        grace_period_seconds=60.0,
    )
    status = scratch / "status"
    status.mkdir(exist_ok=True)
    return worker_environment(plan, 0, status)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
