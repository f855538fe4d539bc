"""What must be true on this node before an attempt starts."""

import os
import shutil
import subprocess
import time

from ddpk8s_agent.plan import Plan
from ddpk8s_agent.preflight import bind_problem
from ddpk8s_agent.processes import descendants, reap_strangers, snapshot
from ddpk8s_agent.signals import StopRequest

_GPU_SECONDS = 30.0
_USED_BYTES = 512 << 20
"""More than this on a GPU whose processes are gone has not come back yet."""


def problem_of_start(plan: Plan, port: int, stop: StopRequest) -> str:
    """Return why no attempt can start here now; empty if it can."""
    reap_strangers()
    left = [process.pid for process in descendants(os.getpid(), snapshot())]
    if left:
        return f"processes {', '.join(map(str, left))} of an earlier attempt are still there"
    if plan.node_rank == 0 and port:
        problem = bind_problem(port)
        if problem:
            return f"port {port} for torchrun: {problem}"
    if plan.checks.gpus:
        _wait_for_gpus(stop)
    return ""


def _wait_for_gpus(stop: StopRequest) -> None:
    """Wait until the memory of GPUs is back, as far as nvidia-smi can tell; the driver takes its time."""
    command = shutil.which("nvidia-smi")
    end = time.monotonic() + _GPU_SECONDS
    while command and time.monotonic() < end and _most_used(command) > _USED_BYTES:
        if stop.wait(1.0):
            return


def _most_used(command: str) -> int:
    query = [command, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
        return max((int(line) << 20 for line in output.split()), default=0)
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0
