"""Somebody who uses `ddpk8s run`, and the terminal before them."""

import json
import os
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.agent.harness import PATIENCE, until

DDPK8S = [sys.executable, "-P", "-c", "from ddpk8s.cli.app import main; main()"]


class User:
    """Somebody in a directory with a job file and a script."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.processes: list[subprocess.Popen[str]] = []
        self.shared = directory / ".ddpk8s" / "volumes" / "data"
        self.runs = directory / ".ddpk8s" / "runs" / "mine"

    def writes(self, script: str, **spec: Any) -> "User":
        """Write `jobs/job.yaml` and `jobs/src/train.py`; JSON is YAML."""
        (self.directory / "jobs" / "src").mkdir(parents=True, exist_ok=True)
        (self.directory / "jobs" / "src" / "train.py").write_text(textwrap.dedent(script))
        document = {
            "apiVersion": "ddpk8s.dev/v1alpha1",
            "kind": "TrainingJob",
            "metadata": {"name": "mine"},
            "spec": {
                "image": "registry.example/x:1",
                "topology": {"nprocPerNode": 2},
                "storage": [{"name": "data", "mountPath": "/data", "persistentVolumeClaim": "d"}],
                "failurePolicy": {"maxRestarts": 0},
                "entrypoint": {"script": "train.py", "args": ["/data"], "code": "./src"},
            }
            | spec,
        }
        (self.directory / "jobs" / "job.yaml").write_text(json.dumps(document))
        return self

    def starts(self, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
        settings: dict[str, Any] = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        } | options
        nproc = () if "--nproc" in arguments else ("--nproc", "2")
        command = [*DDPK8S, "run", *(arguments or ("jobs/job.yaml",)), *nproc]
        self.processes.append(subprocess.Popen(command, cwd=self.directory, **settings))
        return self.processes[-1]

    def runs_to_the_end(self, *arguments: str) -> tuple[int, str, str]:
        process = self.starts(*arguments)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def record(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.runs / "run.json").read_text())
        return content

    def sees(self, *names: str) -> None:
        until(lambda: all((self.shared / name).exists() for name in names), f"{names}")

    def lock_is_free(self) -> bool:
        import fcntl

        with (self.runs / "lock").open() as lock, suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False


def own_terminal() -> None:
    """Make the terminal on stdin the controlling one, so that ^C there becomes SIGINT."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Screen:
    """All that was ever written to a terminal."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._data = b""

    def read(self) -> bool:
        """Read what is there; a terminal nobody reads blocks who writes to it."""
        with suppress(OSError):
            while data := os.read(self._descriptor, 65536):
                self._data += data
        return True

    @property
    def text(self) -> str:
        self.read()
        return self._data.decode(errors="replace")
