"""Starts the agent as `ddpk8s run` and Kubernetes do, with small scripts as workers."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 120.0  # seconds; only ever waited for in full by a test that fails


@dataclass(frozen=True)
class Ended:
    """What an agent left behind."""

    code: int
    out: str
    err: str
    word: dict[str, Any]


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for something to become true and return it."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)
    return value


def alive(pid: int) -> bool:
    """Return whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Job:
    """A job of a test: its directory, its script, its plan, its agents."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.word = directory / "termination.json"
        self.agents: list[subprocess.Popen[str]] = []
        self.document: dict[str, Any] = {
            "schema": 1,
            "job": "test",
            "runId": "run-1",
            "nnodes": 1,
            "nprocPerNode": 2,
            "masterAddr": "127.0.0.1",
            "masterPort": None,
            "command": {"script": "train.py", "args": [], "workingDirectory": str(directory)},
            "env": {"DIRECTORY": str(directory)},
            "maxRestarts": 0,
            "gracePeriodSeconds": 60,
            "checks": {},
            "checkpointDirectory": None,
            "progressRegex": None,
            "terminationMessagePath": str(self.word),
            "stateDirectory": str(self.state),
        }

    def script(self, text: str) -> "Job":
        """Write the workers' script; it finds RANK and ATTEMPT, `touch(name)` and the usual modules."""
        head = """
            import json, os, signal, subprocess, sys, time
            from pathlib import Path
            RANK, ATTEMPT = int(os.environ["RANK"]), int(os.environ["DDPK8S_ATTEMPT"])
            def touch(name, text="x"):
                path = Path(os.environ["DIRECTORY"], name)
                path.with_suffix(".tmp").write_text(str(text))
                path.with_suffix(".tmp").rename(path)
            def wait_for(name):
                while not Path(os.environ["DIRECTORY"], name).exists(): time.sleep(0.02)
        """
        (self.directory / "train.py").write_text(textwrap.dedent(head) + textwrap.dedent(text))
        return self

    def start(
        self, *arguments: str, command: tuple[str, ...] = (), **options: Any
    ) -> "subprocess.Popen[str]":
        """Start an agent."""
        plan = self.directory / "agent.json"
        plan.write_text(json.dumps(self.document))
        settings: dict[str, Any] = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        } | options
        start = command or (sys.executable, "-m", "ddpk8s_agent")
        agent = subprocess.Popen([*start, "--plan", str(plan), *arguments], **settings)
        self.agents.append(agent)
        return agent

    def run(self, **options: Any) -> Ended:
        """Run an agent to its end."""
        return self.end(self.start(**options))

    def end(self, agent: "subprocess.Popen[str]") -> Ended:
        """Wait for the agent's end."""
        out, err = agent.communicate(timeout=PATIENCE)
        word = json.loads(self.word.read_text()) if self.word.exists() else {}
        return Ended(agent.returncode, out or "", err or "", word)

    def wait(self, *names: str) -> None:
        """Wait until workers have made these files."""
        until(lambda: all((self.directory / name).exists() for name in names), f"{names}")

    def number(self, name: str) -> int:
        """Return the number, a pid mostly, in a file that a worker made."""
        self.wait(name)
        return int((self.directory / name).read_text())

    def processes(self) -> list[int]:
        """Return the pids of this job's processes below torchrun, orphans included."""
        marker = f"DDPK8S_STATUS_DIR={self.state}/".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if marker in (entry / "environ").read_bytes() and alive(int(entry.name)):
                    found.append(int(entry.name))
        return found

    def launcher(self, agent: "subprocess.Popen[str]") -> int:
        """Return the pid of torchrun's process."""
        children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children")
        return int(until(lambda: children.read_text().split(), "torchrun")[0])

    def clean_up(self) -> None:
        """Kill whatever a failed test left."""
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
                agent.wait()
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
