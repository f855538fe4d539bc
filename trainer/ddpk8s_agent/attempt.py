"""One attempt: torchrun from its start to the last of its processes gone."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, SIGTERM

from ddpk8s_agent.command import shutdown_seconds, torchrun_arguments, worker_environment
from ddpk8s_agent.console import Console
from ddpk8s_agent.evidence import Evidence, read_ends, read_json
from ddpk8s_agent.logs import WorkerLogs
from ddpk8s_agent.plan import Plan
from ddpk8s_agent.preflight import free_port
from ddpk8s_agent.processes import (
    descendants,
    end_descendants,
    reap_strangers,
    send,
    snapshot,
    worker_leaders,
)
from ddpk8s_agent.progress import Progress
from ddpk8s_agent.signals import StopRequest

_POLL_SECONDS = 0.05
_TEARDOWN_SECONDS = 10.0
"""For processes left behind by torchrun: nothing is to be saved, but a checkpoint may still be written."""
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
    """Processes are left that even SIGKILL does not end; only another node helps."""

    def __init__(self, pids: Iterable[int]) -> None:
        super().__init__(f"processes {', '.join(map(str, pids))} do not end, not even by SIGKILL")


@dataclass
class Attempt:
    """One start of torchrun.

    Attributes:
        plan: What is to run.
        number: Number of this attempt within the run, from 0.
        stop: The request to stop.
        console: Where output goes.
        keep_fds: File descriptors that torchrun holds too, so that a lock lasts as long as the gang.
    """

    plan: Plan
    number: int
    stop: StopRequest
    console: Console
    keep_fds: tuple[int, ...] = ()
    _signalled: set[int] = field(default_factory=set)
    _killed: bool = False

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
        self.status_directory.mkdir(parents=True)
        progress = Progress(self.number, self.plan.progress_regex)
        logs = WorkerLogs(self.directory, self.plan.ranks, self.console, progress)
        began = time.monotonic()
        launcher = self._start(logs.torchrun_directory)
        try:
            while launcher.poll() is None:
                reap_strangers(own=launcher.pid)
                logs.forward()
                if self.stop.requested:
                    self._pass_on_stop(launcher, started=logs.found_any)
                time.sleep(_POLL_SECONDS)
        finally:
            left = self._tear_down()
        logs.finish()
        if left:
            raise UnkillableError(left)
        return self._collect(launcher.returncode, logs, progress, time.monotonic() - began)

    def _start(self, torchrun_directory: Path) -> subprocess.Popen[bytes]:
        port = self.plan.master_port or free_port()
        arguments = torchrun_arguments(self.plan, self.number, port, torchrun_directory)
        own = ["--result", str(self._result_path), "--parent", str(os.getpid()), "--", *arguments]
        with (self.directory / "torchrun.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", _START_SHIM, str(_ROOT), *own],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.plan.command.working_directory,
                env=worker_environment(self.plan, self.number, self.status_directory),
                pass_fds=self.keep_fds,
            )

    @property
    def _result_path(self) -> Path:
        return self.directory / "result.json"

    def _pass_on_stop(self, launcher: "subprocess.Popen[bytes]", *, started: bool) -> None:
        """Ask the workers to stop, each of them once; kill everything when the time is over.

        The workers and not torchrun, which would lose their exit codes; the processes and not their groups,
        for data loaders must live until the checkpoint is written.
        """
        if self.stop.overdue(shutdown_seconds(self.plan)):
            if not self._killed:
                self._killed = True
                why = "asked to stop at once" if self.stop.at_once else "time for stopping is over"
                self.console.say(f"{why}, killing all processes")
            send((process.pid for process in descendants(os.getpid(), snapshot())), SIGKILL)
            return
        if len(self._signalled) == self.plan.nproc_per_node:
            return
        leaders = set(worker_leaders(launcher.pid))
        if not leaders and not started:
            launcher.kill()  # it is still importing torch, there is nothing to save
        send(leaders - self._signalled, SIGTERM)
        self._signalled |= leaders

    def _tear_down(self) -> list[int]:
        """End what torchrun left behind; return the pids of what cannot be ended."""
        polite = 0.0 if self._killed else _TEARDOWN_SECONDS
        if self.stop.since is not None:
            polite = min(polite, self.stop.since + shutdown_seconds(self.plan) - time.monotonic())
        return end_descendants(polite)

    def _collect(self, code: int, logs: WorkerLogs, progress: Progress, seconds: float) -> Evidence:
        result = read_json(self._result_path)
        return Evidence(
            launcher=result.get("outcome", "died"),
            launcher_code=code,
            launcher_message=result.get("message", ""),
            ranks=tuple(self.plan.ranks),
            ends=read_ends(result, self.status_directory, logs.last_words),
            stop_requested=self.stop.requested,
            step=progress.step,
            seconds=seconds,
            finished=read_json(self.status_directory / "finished.json"),
            stopped=read_json(self.status_directory / "stopped.json"),
        )


def next_attempt(state_directory: Path) -> int:
    """Return the first number no attempt of this run had: an agent started anew counts on."""
    numbers: Iterable[str] = (path.name.partition("-")[2] for path in state_directory.glob("attempt-*"))
    with suppress(ValueError):
        return max((int(number) for number in numbers), default=-1) + 1
    return 0
