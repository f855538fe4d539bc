"""One attempt on this node: torchrun from its start to the last of its processes gone."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ddpk8s_agent.beats import Beat, Beats
from ddpk8s_agent.command import torchrun_arguments, worker_environment
from ddpk8s_agent.console import Console
from ddpk8s_agent.ender import Ender
from ddpk8s_agent.evidence import Evidence, read_ends, read_json
from ddpk8s_agent.logs import WorkerLogs
from ddpk8s_agent.memory import oom_kills
from ddpk8s_agent.plan import Plan
from ddpk8s_agent.preflight import free_port
from ddpk8s_agent.processes import reap_strangers, worker_ranks
from ddpk8s_agent.progress import Progress
from ddpk8s_agent.signals import StopRequest

_ENDING_SECONDS, _SHOWING_SECONDS, _CALM_SECONDS = 0.05, 0.2, 1.0
"""Between two looks: while it starts or ends, while workers write, while nothing happens but what wakes us anyway.

Each look takes time from the training.
"""
_BUSY_SECONDS = 5.0
_LOOKS, _MOST_LOOKS = 20, 200
"""How often we look which processes the workers are; the first answers may come before they are what they will be."""
_ROOT = Path(__file__).parents[1]
"""Where this package is imported from: a directory, or the zipapp."""
_START_SHIM = """
import sys
# Without the working directory, whose files may be called like modules of the standard library.
sys.path = [sys.argv.pop(1), *filter(None, sys.path)]
from ddpk8s_agent.shim import main
sys.exit(main(sys.argv[1:]))
"""


class UnkillableError(Exception):
    """Processes are left that even SIGKILL does not end; only another node helps.

    Attributes:
        evidence: Of the attempt that left them, if one did.
    """

    def __init__(self, pids: Iterable[int], evidence: Evidence | None = None) -> None:
        super().__init__(f"processes {', '.join(map(str, pids))} do not end, not even by SIGKILL")
        self.evidence = evidence


class Gang(Protocol):
    """What an attempt has to do with the other nodes."""

    def drain(self) -> tuple[str, float] | None:
        """Return why the attempt is to end here, and the seconds between SIGTERM and SIGKILL; or None."""

    def suspect(self, hint: str) -> None:
        """Say that something ended here."""

    def beat(self, ranks: tuple[Beat, ...]) -> None:
        """Say how far the ranks are."""

    def stopping(self) -> None:
        """Say that somebody asked this agent to stop."""


@dataclass
class Attempt:
    """One start of torchrun.

    Attributes:
        plan: What is to run.
        number: Number of this attempt within the run, from 0.
        rdzv: Names this start, the same on all nodes.
        port: Of torchrun's store; 0 takes a free one.
        gang: The other nodes.
        stop: The request to stop.
        console: Where output goes.
        keep_fds: File descriptors that torchrun holds too, so that a lock lasts as long as the gang.
    """

    plan: Plan
    number: int
    rdzv: str
    port: int
    gang: Gang
    stop: StopRequest
    console: Console
    keep_fds: tuple[int, ...] = ()
    _suspected: bool = False
    _looks: int = 0
    _workers: dict[int, int] = field(default_factory=dict)
    _ender: Ender = field(init=False)

    def __post_init__(self) -> None:
        self._ender = Ender(self.plan, self.stop, self.console)

    @property
    def directory(self) -> Path:
        """Logs and status files of this attempt."""
        return self.plan.state_directory / f"attempt-{self.number}"

    @property
    def status_directory(self) -> Path:
        """Where the trainer leaves its status files."""
        return self.directory / "status"

    def run(self) -> Evidence:
        """Run to the end; return what is left of it.

        Raises:
            UnkillableError: a process survived SIGKILL.
        """
        self.status_directory.mkdir(parents=True, exist_ok=True)
        progress = Progress(self.number, self.plan.progress_regex)
        logs = WorkerLogs(
            self.directory,
            self.plan.ranks,
            self.console,
            progress,
            many=self.plan.nnodes * self.plan.nproc_per_node > 1,
        )
        beats = Beats(self.plan, self.status_directory, progress, logs)
        began, kills = time.monotonic(), oom_kills()
        showed = began
        launcher = self._start(logs.torchrun_directory)
        try:
            while launcher.poll() is None:
                reap_strangers(own=launcher.pid)
                showed = time.monotonic() if logs.forward() else showed
                self._watch(launcher, logs, beats)
                self.stop.waker.wait(self._pause(began, showed))
            if launcher.returncode != 0 and not self._ender.drained:
                self._suspect("torchrun ended")
        finally:
            left = self._ender.tear_down()
        logs.finish()
        beats.look()
        evidence = self._collect(launcher.returncode, logs, beats, time.monotonic() - began)
        evidence = replace(evidence, oom=oom_kills() > kills)
        if left:
            raise UnkillableError(left, evidence)
        return evidence

    def _pause(self, began: float, showed: float) -> float:
        """Return the seconds until the next look."""
        now = time.monotonic()
        if self.stop.requested or self._suspected or self._ender.draining or now - began < _BUSY_SECONDS:
            return _ENDING_SECONDS
        return _SHOWING_SECONDS if now - showed < _BUSY_SECONDS else _CALM_SECONDS

    def _start(self, torchrun_directory: Path) -> subprocess.Popen[bytes]:
        arguments = torchrun_arguments(self.plan, self.rdzv, self.port or free_port(), torchrun_directory)
        waker = self.stop.waker.write_fd
        own = ["--result", str(self._result_path), "--parent", str(os.getpid()), "--notify", str(waker)]
        shim = [self.plan.shim] if self.plan.shim else ["-c", _START_SHIM, str(_ROOT)]
        with (self.directory / "torchrun.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, *shim, *own, "--", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.plan.command.working_directory,
                env=worker_environment(self.plan, self.number, self.status_directory),
                pass_fds=(*self.keep_fds, waker),
            )

    @cached_property
    def _ending_path(self) -> str:
        return str(self._result_path.with_suffix(".ending"))

    @property
    def _result_path(self) -> Path:
        return self.directory / "result.json"

    def _watch(self, launcher: "subprocess.Popen[bytes]", logs: WorkerLogs, beats: Beats) -> None:
        """Look once at everything that may end this attempt."""
        if beats.due():
            self.gang.beat(beats.look())
        self._note_workers(launcher, logs)
        if self.stop.requested:
            self.gang.stopping()
            self._ender.pass_on_stop(launcher, started=logs.found_any)
        elif not self._suspected and os.path.exists(self._ending_path):  # noqa: PTH110 - many times a second
            self._suspect("a worker ended, and torchrun is ending the others")
        order = self.gang.drain()
        if order is not None:
            self._ender.begin(*order, launcher, logs, beats, ending_already=self._suspected)
        self._ender.kill_if_due(launcher)

    def _note_workers(self, launcher: "subprocess.Popen[bytes]", logs: WorkerLogs) -> None:
        """Remember which process each rank is, while they start; later it may be gone."""
        missing = len(self._workers) < self.plan.nproc_per_node
        if logs.found_any and self._looks < (_MOST_LOOKS if missing else _LOOKS):
            self._looks += 1
            self._workers |= worker_ranks(launcher.pid)

    def _left_or_told(self, result: dict[str, Any]) -> tuple[int, ...]:
        """Return the ranks whose ends are told, or that left with 0 by themselves.

        One that leaves with 0 because torchrun or we asked it to is not among torchrun's failures, either.
        """
        told = {failure["rank"] for failure in result.get("failures", ())}
        asked = {*result.get("closed", ()), *self._ender.signalled}
        return tuple(rank for rank in self.plan.ranks if rank in told or self._workers.get(rank) not in asked)

    def _suspect(self, hint: str) -> None:
        if not self._suspected:
            self._suspected = True
            self.gang.suspect(hint)

    def _collect(self, code: int, logs: WorkerLogs, beats: Beats, seconds: float) -> Evidence:
        result = read_json(self._result_path)
        # Whoever was asked to stop ends as it likes: only what we ended for another's sake is no evidence.
        signalled = set() if self.stop.requested else self._ender.signalled
        return Evidence(
            launcher=result.get("outcome", "died"),
            launcher_code=code,
            launcher_message=result.get("message", ""),
            launcher_node=self.plan.node_rank,
            ranks=self._left_or_told(result),
            ends=read_ends(result, self.status_directory, logs.last_words, signalled),
            stop_requested=self.stop.requested,
            drained=self._ender.drained,
            step=beats.step,
            seconds=seconds,
            finished=read_json(self.status_directory / "finished.json"),
            stopped=read_json(self.status_directory / "stopped.json"),
            hung=self._ender.hung,
        )


def next_attempt(state_directory: Path) -> int:
    """Return the first number no attempt of this run had here: an agent started anew counts on."""
    numbers: Iterable[str] = (path.name.partition("-")[2] for path in state_directory.glob("attempt-*"))
    with suppress(ValueError):
        return max((int(number) for number in numbers), default=-1) + 1
    return 0
