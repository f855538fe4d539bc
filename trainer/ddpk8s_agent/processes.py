"""The process tree: find, signal and reap what belongs to us.

Process groups are no help: torchrun gives each worker a session of its own, and anything may start another.
So everything goes by descent; with the agent as subreaper, orphans become its children and stay in sight.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One living process, as the kernel shows it."""

    pid: int
    parent: int
    group: int


def become_subreaper() -> None:
    """Have orphaned descendants re-parent to this process (Linux; PID 1 of a container gets them anyway)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def terminate_with_parent(parent: int) -> bool:
    """Have the kernel send SIGTERM when `parent` dies (Linux); return whether it lives still.

    It must be the parent, and its starting thread must live as long as it: the kernel watches the thread.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    return os.getppid() == parent


def snapshot() -> dict[int, Process]:
    """Return all living processes by pid; zombies are dead."""
    if not (_PROC / "self/stat").exists():
        return _snapshot_ps()
    table = {}
    for entry in os.scandir(_PROC):
        if entry.name.isdecimal():
            with suppress(OSError):
                # pid (name) state parent group ...; the name may hold spaces and parentheses
                fields = (_PROC / entry.name / "stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    pid = int(entry.name)
                    table[pid] = Process(pid, int(fields[1]), int(fields[2]))
    return table


def _snapshot_ps() -> dict[int, Process]:
    """Return the same where there is no /proc."""
    command = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="]
    rows = [
        row.split()
        for row in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    ]
    return {int(row[0]): Process(*map(int, row[:3])) for row in rows if not row[3].startswith("Z")}


def descendants(root: int, table: dict[int, Process]) -> list[Process]:
    """Return the living descendants of `root`, parents before children."""
    children: dict[int, list[Process]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    queue = [root]
    for pid in queue:
        below = children.get(pid, [])
        found += below
        queue += [process.pid for process in below]
    return found


def worker_leaders(launcher: int) -> list[int]:
    """Return the pids of the workers: torchrun's children that lead a group of their own."""
    return [p.pid for p in snapshot().values() if p.parent == launcher and p.group == p.pid]


def worker_ranks(launcher: int) -> dict[int, int]:
    """Return the pids of the workers by global rank, which their environment tells (Linux)."""
    ranks = {}
    for number, pid in enumerate(sorted(worker_leaders(launcher))):
        rank = number
        with suppress(OSError, ValueError):
            environment = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
            rank = next((int(each[5:]) for each in environment if each.startswith(b"RANK=")), number)
        ranks[rank] = pid
    return ranks


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each of `pids` that lives."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def reap_strangers(own: int | None = None) -> None:
    """Reap adopted orphans, but leave `own` to its Popen, which takes a lost status for 0."""
    if not hasattr(os, "waitid"):
        return
    with suppress(ChildProcessError):
        while True:
            peeked = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if peeked is None or peeked.si_pid == own:
                return
            os.waitid(os.P_PID, peeked.si_pid, os.WEXITED | os.WNOHANG)


def end_descendants(polite_seconds: float, kill_seconds: float = 30.0) -> list[int]:
    """End every descendant of this process; return the pids of those that even SIGKILL does not end.

    Our direct children, workers without their torchrun among them, get SIGTERM and `polite_seconds`; the rest
    of the tree is theirs to end. Then everything gets SIGKILL until nothing is left, or `kill_seconds` are
    over: a process in uninterruptible sleep stays.
    """
    me = os.getpid()
    asked: set[int] = set()
    start = time.monotonic()
    while True:
        reap_strangers()
        left = descendants(me, snapshot())
        waited = time.monotonic() - start
        if not left:
            return []
        if waited > polite_seconds + kill_seconds:
            return [process.pid for process in left]
        if waited < polite_seconds:
            fresh = {process.pid for process in left if process.parent == me} - asked
            send(fresh, signal.SIGTERM)
            asked |= fresh
        else:
            send((process.pid for process in left), signal.SIGKILL)
        time.sleep(0.02)


def strays(marker: str) -> list[int]:
    """Return processes of an earlier agent: alive, in our container, `marker` in their environment (Linux).

    They are left when agent and torchrun were both killed; two gangs would then write the same checkpoints.
    """
    if not (_PROC / "self/environ").exists():
        return []
    table = snapshot()
    mine, pid = {os.getpid()}, os.getpid()
    while pid in table:
        pid = table[pid].parent
        mine.add(pid)
    container = (_PROC / "self/ns/mnt").readlink()
    found = []
    for pid in set(table) - mine:
        with suppress(OSError):
            environment = (_PROC / str(pid) / "environ").read_bytes()
            if marker.encode() in environment and (_PROC / str(pid) / "ns/mnt").readlink() == container:
                found.append(pid)
    return sorted(found)
