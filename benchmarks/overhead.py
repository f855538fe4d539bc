"""What the agent costs while nothing fails: the same gang, its agent running and stopped, in turn."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

from benchmarks.figures import Row, at_least
from benchmarks.machine import cpu_seconds

BLOCK_SECONDS = 4.0
PAIRS = 15
BAR = 0.99
_WORKER = """
import os, sys
import torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
weights, gradient = torch.randn(512, 512), torch.randn(512, 512)
with open(f"{os.environ['COUNTERS']}/rank-{os.environ['RANK']}", "wb", buffering=0) as counter:
    step = 0
    while not os.path.exists(os.environ["COUNTERS"] + "/finish") or step % 500:
        for _ in range(4):
            weights = torch.tanh(weights @ gradient)
        dist.all_reduce(gradient)
        gradient.div_(2)
        step += 1
        os.pwrite(counter.fileno(), b"%20d" % step, 0)
        if step % 50 == 0:
            print(f"step {step}", flush=True)
    dist.barrier()
dist.destroy_process_group()
"""


def measure(pairs: int = PAIRS) -> list[Row]:
    """Return the ratio of steps/s with the agent running to those with it stopped (SIGSTOP: the workers go on)."""
    with tempfile.TemporaryDirectory(prefix="overhead-") as name:
        directory = Path(name)
        agent = _start(directory)
        try:
            _wait_for_steps(directory, 200)
            rates: dict[bool, list[float]] = {True: [], False: []}
            cpu, since = cpu_seconds(agent.pid), time.monotonic()
            for number in range(2 * pairs):
                # ABBA: what drifts over a pair falls on both.
                stopped = number % 4 in (1, 2)
                agent.send_signal(signal.SIGSTOP if stopped else signal.SIGCONT)
                time.sleep(0.2)
                rates[not stopped].append(_rate(directory))
            used = (cpu_seconds(agent.pid) - cpu) / (time.monotonic() - since) * 2
            agent.send_signal(signal.SIGCONT)
            (directory / "finish").touch()
            agent.wait(60)
        finally:
            with suppress(ProcessLookupError):
                agent.send_signal(signal.SIGCONT)
                agent.kill()
    ratios = [running / stopped for running, stopped in zip(rates[True], rates[False], strict=True)]
    detail = f"{median(rates[True]):.0f} and {median(rates[False]):.0f} steps/s; the agent takes {used:.1%} of one core"
    return [at_least("steps/s with the agent at work, to those with the agent stopped", ratios, BAR, detail)]


def _start(directory: Path) -> "subprocess.Popen[bytes]":
    (directory / "train.py").write_text(_WORKER, encoding="utf-8")
    plan = {
        **{"schema": 1, "job": "overhead", "runId": "run", "nnodes": 1, "nprocPerNode": 2, "maxRestarts": 0},
        **{"command": {"script": "train.py", "workingDirectory": str(directory)}, "gracePeriodSeconds": 30},
        **{"env": {"COUNTERS": str(directory)}, "progressRegex": r"step (?P<step>\d+)"},
        **{
            "stateDirectory": str(directory / "state"),
            "terminationMessagePath": str(directory / "word.json"),
        },
    }
    (directory / "agent.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [sys.executable, "-m", "ddpk8s_agent", "--plan", str(directory / "agent.json")]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _steps(directory: Path) -> int:
    try:
        return int((directory / "rank-0").read_bytes() or b"0")
    except (OSError, ValueError):
        return 0


def _rate(directory: Path) -> float:
    began, first = time.monotonic(), _steps(directory)
    time.sleep(BLOCK_SECONDS)
    return (_steps(directory) - first) / (time.monotonic() - began)


def _wait_for_steps(directory: Path, steps: int) -> None:
    end = time.monotonic() + 120
    while _steps(directory) < steps:
        if time.monotonic() > end:
            raise TimeoutError("the gang does not train")
        time.sleep(0.1)
