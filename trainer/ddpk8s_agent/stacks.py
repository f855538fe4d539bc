"""What hung ranks were doing: their Python stacks, which faulthandler writes when SIGABRT ends them."""

import re
import resource
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ddpk8s_agent.evidence import HungRank
from ddpk8s_agent.processes import send, snapshot

_WRITE_SECONDS = 3.0
_FRAME = re.compile(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<function>\S+)')
_THREAD = re.compile(r"\s*((Current thread|Thread) 0x|Stack \(most recent)")
# What waits there, waits for a thread, a pipe or a queue of its own.
_STANDARD_LIBRARY = re.compile(r"/lib(64)?/python3[^/]*/(?!site-packages/|dist-packages/)")
_DEEPEST = 12
# Where a rank stands that waits for others: in a collective, or in the backward pass that runs them.
_WAITING_FILES = (
    "/torch/distributed/",
    "/torch/autograd/graph.py",
    "/torch/cuda/__init__.py",
    "/deepspeed/comm/",
)
_WAITING_FUNCTIONS = ("all_reduce", "barrier", "wait", "synchronize", "_engine_run_backward")


def abort(leaders: Mapping[int, int]) -> set[int]:
    """End ranks so that each leaves its stack; return the ranks that a signal had stopped.

    Args:
        leaders: Process id by global rank.
    """
    stopped = {rank for rank, pid in leaders.items() if _state(pid) in ("T", "t")}
    for pid in leaders.values():
        _no_core(pid)
    send(leaders.values(), signal.SIGABRT)
    # In this order a rank that was stopped shows where that was.
    send([leaders[rank] for rank in stopped], signal.SIGCONT)
    end = time.monotonic() + _WRITE_SECONDS
    while time.monotonic() < end and not snapshot().keys().isdisjoint(leaders.values()):
        time.sleep(0.05)
    return stopped


def hung_rank(rank: int, step: int | None, age: float, log: list[str], *, stopped: bool) -> HungRank:
    """Return what is known of a hung rank; `log` is the end of its stderr."""
    stack = find_stack(log)
    return HungRank(
        rank, step, age, stopped, None if stopped or not stack else _waits(stack), tuple(stack[:_DEEPEST])
    )


def find_stack(log: list[str]) -> list[str]:
    """Return the frames of the main thread in faulthandler's output, innermost first; empty without any."""
    starts = [number for number, line in enumerate(log) if "Fatal Python error: Aborted" in line]
    if not starts:
        return []
    threads: list[list[str]] = []
    current = -1
    for line in log[starts[-1] + 1 :]:
        if _THREAD.match(line):
            if line.lstrip().startswith("Current thread"):
                current = len(threads)
            threads.append([])
        elif _FRAME.match(line) and threads:
            threads[-1].append(line.strip())
    if not threads:
        return []
    # The signal interrupts the main thread, but where it was blocked in C, another one may have taken it.
    return threads[current] if current >= 0 and threads[current] else threads[-1]


def _waits(stack: list[str]) -> bool:
    """Return whether the innermost frames are those of a rank that waits for others."""
    for line in stack[:3]:
        match = _FRAME.match(line)
        if match and not _STANDARD_LIBRARY.search(match["file"]):
            waits = any(part in match["file"] for part in _WAITING_FILES)
            if waits or match["function"] in _WAITING_FUNCTIONS:
                return True
    return False


def _no_core(pid: int) -> None:
    """Keep a process from leaving a core, which would fill the disk and take its time."""
    with suppress(OSError, ValueError):
        hard = resource.prlimit(pid, resource.RLIMIT_CORE)[1]
        # To the kernel 1 means none, also where a program collects them; there 0 means nothing.
        soft = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
        resource.prlimit(pid, resource.RLIMIT_CORE, (soft, hard))


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return ""
