"""The run directory of a job, `.ddpk8s/runs/JOB`: lock, record, and the agent's files."""

import fcntl
import json
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddpk8s.errors import DdpError, SpecError

BASE = Path(".ddpk8s")


def new_run_id() -> str:
    """Return an id for a new run; it sorts by time and is a valid label value."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def make_base(directory: Path) -> None:
    """Make `.ddpk8s`, invisible to git.

    Raises:
        DdpError: it cannot be made here.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        ignore = directory / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise DdpError(f"cannot write to {directory}: {error.strerror}") from error


class RunDirectory:
    """Files of a job's runs in the current directory; locked as long as its gang lives."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock_fd = -1

    def lock(self, run: Mapping[str, Any]) -> None:
        """Take the lock, and leave a note in it for who comes second.

        The file descriptor is handed to agent and torchrun, so the lock outlives us if they do.

        Raises:
            SpecError: the job is running already.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self.lock_fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self.lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note = _parse(os.read(self.lock_fd, 4096))
            os.close(self.lock_fd)
            raise _running(self.path.name, note) from None
        self.note(run)

    def note(self, run: Mapping[str, Any]) -> None:
        """Write into the lock file who holds it: `pid`, `since`, `runId`."""
        data = json.dumps({**run, "pid": os.getpid(), "since": time.strftime("%H:%M:%S")}).encode()
        os.ftruncate(self.lock_fd, os.pwrite(self.lock_fd, data, 0))

    def unlock(self) -> None:
        """Let go of the lock; whoever else holds the descriptor keeps it."""
        os.close(self.lock_fd)

    def read_record(self) -> dict[str, Any]:
        """Return what is known of the newest run; empty if there was none."""
        try:
            return _parse((self.path / "run.json").read_bytes())
        except OSError:
            return {}

    def node(self, rank: int) -> Path:
        """Return the directory of a node's files.

        Node 0's are where those of an only node are: however many nodes a run is continued with, its attempts
        are counted on. A node's directory lies in no other one's state, whose agent would take its processes
        for its own.
        """
        return self.path / f"node-{rank}" if rank else self.path

    def state(self, run_id: str, rank: int = 0) -> Path:
        """Return where a node's agent keeps what it has of a run: attempts, and its last word."""
        return self.node(rank) / run_id

    def write(self, name: str, content: Mapping[str, Any], rank: int = 0) -> Path:
        """Write a JSON file of a node, all of it or nothing; return its path."""
        path = self.node(rank) / name
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        partial.replace(path)
        return path


def _parse(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _running(job: str, note: Mapping[str, Any]) -> SpecError:
    pid, run_id, since = (note.get(key, "unknown") for key in ("pid", "runId", "since"))
    if isinstance(pid, int) and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
        return SpecError(
            f"{job} is still stopping: `ddpk8s run` (pid {pid}) is gone, its processes save and end",
            "try again in a moment",
        )
    return SpecError(
        f"{job} is running already in this directory: pid {pid}, since {since}, run {run_id}",
        "stop it by Ctrl-C there, or give this one another metadata.name",
    )
