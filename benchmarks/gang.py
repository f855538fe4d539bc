"""Many agents on one machine: how long they take to gate, beat and restart, and what the coordinator needs."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from benchmarks.figures import Row
from benchmarks.machine import cpu_seconds
from ddpk8s_agent.preflight import free_port

SIZES = (64, 128, 256, 512)
BEATING_SECONDS = 10.0
_PATIENCE = 600.0
# In torchrun's place: no workers, only an end when it is asked for. Each start is told by a file.
_SHIM = """
import json, os, signal, sys, time
arguments = sys.argv
result = arguments[arguments.index("--result") + 1]
rank = arguments[arguments.index("--node-rank") + 1]
attempt = os.environ["DDPK8S_ATTEMPT"]
directory = os.path.dirname(os.path.abspath(__file__))
def end(*_):
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
open(f"{directory}/started-{attempt}-{rank}", "x").close()
while not os.path.exists(f"{directory}/finish"):
    time.sleep(0.5)
with open(result, "w") as file:
    json.dump({"outcome": "finished", "failures": [], "closed": []}, file)
"""


def measure(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """Return a line for each number of agents; every agent is a process of its own, with real sockets.

    Measured in a fresh interpreter, whose forks have nothing in memory but the agent.
    """
    command = [sys.executable, "-m", "benchmarks.gang", *map(str, sizes)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [Row(**json.loads(line)) for line in lines]


def _row(size: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="gang-") as name:
        directory = Path(name)
        (directory / "shim.py").write_text(_SHIM, encoding="utf-8")
        began = time.monotonic()
        agents = {node: _fork(directory, node, size, free_port_of(directory)) for node in range(size)}
        try:
            forked = time.monotonic() - began
            _wait(lambda: _started(directory, 0) == size, "the first attempt")
            gate = time.monotonic() - began
            cpu, since = cpu_seconds(agents[0]), time.monotonic()
            time.sleep(BEATING_SECONDS)
            beating = (cpu_seconds(agents[0]) - cpu) / (time.monotonic() - since)
            memory = _memory(agents[0])
            restart = _restart(directory, agents, size)
            (directory / "finish").touch()
            codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in agents.values()]
            agents.clear()
        finally:
            for pid in agents.values():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
    assert codes == [0] * size, f"not all agents left with 0: {codes}"
    return Row(
        f"{size} agents",
        f"gate {gate:.1f} s, restart {restart:.1f} s",
        detail=f"of the gate, {forked:.1f} s are the starts of the processes; coordinator: {beating:.1%} of one core "
        f"while all beat, {memory:.0f} MiB",
    )


def free_port_of(directory: Path) -> int:
    """Return the port of this gang, the same for all."""
    path = directory / "port"
    if not path.exists():
        path.write_text(str(free_port()))
    return int(path.read_text())


def _fork(directory: Path, node: int, size: int, port: int) -> int:
    """Start an agent in a fork of this process: 512 interpreters would mostly measure Python's start."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        folder = directory / f"node-{node}"
        folder.mkdir()
        os.environ["DDPK8S_NODE_RANK"] = str(node)
        plan = {
            **{"schema": 1, "job": "many", "runId": "run", "nnodes": size, "nprocPerNode": 1},
            **{"masterAddr": "127.0.0.1", "masterPort": 29_999, "gangPort": port, "maxRestarts": 9},
            **{"command": {"script": "shim.py", "workingDirectory": str(directory)}, "env": {}},
            **{"gracePeriodSeconds": 30, "shim": str(directory / "shim.py")},
            **{"stateDirectory": str(folder), "terminationMessagePath": str(folder / "word.json")},
        }
        (folder / "agent.json").write_text(json.dumps(plan), encoding="utf-8")
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = _run_agent(folder / "agent.json")
    finally:
        os._exit(code)


def _run_agent(plan: Path) -> int:
    from ddpk8s_agent.cli import main
    from ddpk8s_agent.signals import StopRequest

    stop = StopRequest()
    stop.install()
    return main(["--plan", str(plan)], stop)


def _restart(directory: Path, agents: dict[int, int], size: int) -> float:
    """Kill torchrun's stand-in of the last node; return the seconds until all have started again."""
    children = Path(f"/proc/{agents[size - 1]}/task/{agents[size - 1]}/children").read_text(encoding="utf-8")
    began = time.monotonic()
    os.kill(int(children.split()[0]), signal.SIGKILL)
    _wait(lambda: _started(directory, 1) == size, "the second attempt")
    return time.monotonic() - began


def _started(directory: Path, attempt: int) -> int:
    return sum(1 for _ in directory.glob(f"started-{attempt}-*"))


def _memory(pid: int) -> float:
    """Return the resident memory of a process in MiB, shared pages of the fork included."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _wait(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.05)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(json.dumps(asdict(_row(int(argument)))), flush=True)
