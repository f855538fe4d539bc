"""Ends the attempt on this node when it is asked to: stop, failure elsewhere, hang."""

import os
import subprocess
import time
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import TypeAlias

from ddpk8s_agent import stacks
from ddpk8s_agent.beats import Beats
from ddpk8s_agent.command import shutdown_seconds
from ddpk8s_agent.console import Console
from ddpk8s_agent.evidence import HungRank
from ddpk8s_agent.logs import WorkerLogs
from ddpk8s_agent.plan import Plan
from ddpk8s_agent.processes import descendants, end_descendants, send, snapshot, worker_leaders, worker_ranks
from ddpk8s_agent.signals import StopRequest

Launcher: TypeAlias = "subprocess.Popen[bytes]"
_TEARDOWN_SECONDS = 10.0
"""For processes left behind by torchrun: nothing is to be saved, but a checkpoint may still be written."""
_SHIM_SECONDS = 5.0
"""For torchrun to notice that its workers are gone, and to say how they ended."""
_STACK_LINES = 4000
"""Of a hundred threads, as many as faulthandler shows."""


class Ender:
    """Signals workers, in order, and remembers which of their ends are our doing.

    Attributes:
        signalled: Pids of workers that we signalled.
        drained: Why we ended the attempt before torchrun did; empty if we did not.
        hung: What the ranks were doing, if nothing moved.
    """

    def __init__(self, plan: Plan, stop: StopRequest, console: Console) -> None:
        self.signalled: set[int] = set()
        self.drained = ""
        self.hung: tuple[HungRank, ...] = ()
        self._plan, self._stop, self._console = plan, stop, console
        self._killed = False
        self._kill_at = float("inf")

    @property
    def draining(self) -> bool:
        """Whether the attempt is being ended."""
        return self._kill_at < float("inf")

    def begin(
        self,
        why: str,
        grace: float,
        launcher: Launcher,
        logs: WorkerLogs,
        beats: Beats,
        *,
        ending_already: bool,
    ) -> None:
        """End the attempt here, since it has ended elsewhere, or torchrun is ending it (`ending_already`)."""
        if self._kill_at < float("inf"):
            return
        self._kill_at = time.monotonic() + grace
        leaders = worker_ranks(launcher.pid)
        if not leaders and not logs.found_any:
            self.drained = why
            launcher.kill()  # it is still importing torch
            return
        if ending_already:
            return  # torchrun itself is ending its workers
        self.drained = why
        if why in ("hang", "finish"):
            self._take_stacks(launcher, leaders, logs, beats)
            self._kill_at = time.monotonic()
            return
        fresh = set(leaders.values()) - self.signalled
        send(fresh, SIGTERM)
        self.signalled |= fresh

    def _take_stacks(
        self, launcher: Launcher, leaders: dict[int, int], logs: WorkerLogs, beats: Beats
    ) -> None:
        self.signalled |= set(leaders.values())
        before = {rank: (step, age) for rank, step, age, _ in beats.look()}
        launcher.send_signal(SIGSTOP)  # when the first rank ends, it would end those that still write
        try:
            stopped = stacks.abort(leaders)
        finally:
            launcher.send_signal(SIGCONT)
        self.hung = tuple(
            stacks.hung_rank(
                rank,
                *before.get(rank, (None, 0.0)),
                logs.last_lines(rank, _STACK_LINES),
                stopped=rank in stopped,
            )
            for rank in sorted(leaders)
        )

    def kill_if_due(self, launcher: Launcher) -> None:
        """Kill the workers and all below them; torchrun only if it does not end by itself then."""
        if time.monotonic() < self._kill_at or self._stop.requested:
            return
        below = [process.pid for process in descendants(launcher.pid, snapshot())]
        self.signalled |= set(below)
        send(below, SIGKILL)
        if time.monotonic() > self._kill_at + _SHIM_SECONDS:
            launcher.kill()

    def pass_on_stop(self, launcher: Launcher, *, started: bool) -> None:
        """Ask the workers to stop, each of them once; kill everything when the time is over.

        The workers and not torchrun, which would lose their exit codes; the processes and not their groups,
        for data loaders must live until the checkpoint is written.
        """
        if self._stop.overdue(shutdown_seconds(self._plan)):
            if not self._killed:
                self._killed = True
                why = "asked to stop at once" if self._stop.at_once else "time for stopping is over"
                self._console.say(f"{why}, killing all processes")
            send((process.pid for process in descendants(os.getpid(), snapshot())), SIGKILL)
            return
        if len(self.signalled) >= self._plan.nproc_per_node:
            return
        leaders = set(worker_leaders(launcher.pid))
        if not leaders and not started:
            launcher.kill()  # it is still importing torch, there is nothing to save
        send(leaders - self.signalled, SIGTERM)
        self.signalled |= leaders

    def tear_down(self) -> list[int]:
        """End what torchrun left behind; return the pids of what cannot be ended."""
        polite = 0.0 if self._killed else _TEARDOWN_SECONDS
        if self._kill_at < float("inf"):
            polite = max(0.0, min(polite, self._kill_at - time.monotonic()))
        if self._stop.since is not None:
            polite = min(polite, self._stop.since + shutdown_seconds(self._plan) - time.monotonic())
        return end_descendants(max(0.0, polite))
