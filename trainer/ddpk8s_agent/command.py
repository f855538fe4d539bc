"""torchrun's arguments and environment for one attempt."""

import os
from pathlib import Path

from ddpk8s_agent.plan import Plan

SHUTDOWN_MARGIN_SECONDS = 5.0


def shutdown_seconds(plan: Plan) -> float:
    """Return how long workers may take to stop; the rest of the grace period is for us."""
    return max(plan.grace_period_seconds - SHUTDOWN_MARGIN_SECONDS, plan.grace_period_seconds / 2)


def torchrun_arguments(plan: Plan, rdzv: str, port: int, log_directory: Path) -> list[str]:
    """Return torchrun's command line, without the program.

    Static rendezvous and no restarts of its own (across pods they are unreliable): every attempt is a new
    torchrun with a port and an id of its own, so nothing of an earlier one can be met.
    """
    arguments = [
        *("--nnodes", str(plan.nnodes), "--node-rank", str(plan.node_rank)),
        *("--nproc-per-node", str(plan.nproc_per_node)),
        *("--rdzv-backend", "static", "--rdzv-id", rdzv),
        *("--master-addr", plan.master_addr, "--master-port", str(port)),
        *("--max-restarts", "0", "--log-dir", str(log_directory), "--redirects", "3"),
    ]
    command = plan.command
    return [*arguments, *(["-m"] if command.module else []), command.name, *command.args]


def worker_environment(plan: Plan, attempt: int, status_directory: Path) -> dict[str, str]:
    """Return the whole environment of torchrun, which hands it on to the workers."""
    # A controller's PET_* would quietly override the command line.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PET_")}
    environment["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS") or str(_threads(plan.nproc_per_node))
    environment.setdefault("PYTHONFAULTHANDLER", "1")  # a segmentation fault then leaves a stack in the log
    if plan.command.module:
        # A random.py in the current directory is not the standard library's.
        environment["PYTHONSAFEPATH"] = "1"
        # Huge pages for what torch allocates and frees in each step on a CPU: a tenth of the time (glibc >= 2.35).
        environment.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    if plan.hang_timeout_seconds is not None:
        environment["DDPK8S_HANG_TIMEOUT"] = str(plan.hang_timeout_seconds)
    environment.update(plan.env)
    environment.update(
        DDPK8S_JOB=plan.job,
        DDPK8S_RUN_ID=plan.run_id,
        DDPK8S_ATTEMPT=str(attempt),
        DDPK8S_STATUS_DIR=str(status_directory),
        TORCH_ELASTIC_SHUTDOWN_TIMEOUT=str(int(shutdown_seconds(plan))),
    )
    return environment


def _threads(processes: int) -> int:
    """Return the cores of each worker, counting only those this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // processes)
