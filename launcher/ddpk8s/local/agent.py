"""The agent's process: started in a session of its own, read line by line, asked to stop."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO, Literal

PROGRESS_PREFIX = "ddpk8s-progress: "
AGENT_PREFIX = "ddpk8s-agent: "
STOPPED = 143
_POLL_SECONDS = 0.2
_KILL_SECONDS = 15.0
_CHUNK = 1 << 16

Stream = Literal["stdout", "stderr"]


class Stopper:
    """Ctrl-C and SIGTERM while the agent runs.

    The first one asks the agent to stop in order, which saves the state; a second Ctrl-C to stop at once. If
    even that brings nothing, the agent is killed, and its torchrun and workers see to their own end.
    """

    def __init__(self, *, saves: bool) -> None:
        """Listen to nothing yet; `saves` says whether the workers are ours, and known to save their state."""
        self.asked = 0
        self._saves = saves
        self._told = 0
        self._pid: int | None = None
        self._since = 0.0

    def install(self) -> None:
        """Listen to the signals."""
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGTERM, self._terminate)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            signal.signal(signal.SIGHUP, self._terminate)

    def watch(self, pid: int | None) -> None:
        """Have signals passed on to the agent, those too that came before it was there; None: it is gone."""
        self._pid = pid
        self._pass_on()

    def news(self) -> str | None:
        """Return what to tell the user of a signal that came, once."""
        if self.asked == self._told:
            return None
        self._told = self.asked
        if self._saves:
            first = "stopping: saving a checkpoint; Ctrl-C again stops at once"
            return first if self.asked == 1 else "stopping at once, nothing more is saved"
        return "stopping your script; Ctrl-C again kills it" if self.asked == 1 else "killing your script"

    def kill_if_deaf(self) -> None:
        """Kill the agent if it does not stop at once, as asked."""
        if self.asked > 1 and self._pid and time.monotonic() - self._since > _KILL_SECONDS:
            self._send(signal.SIGKILL)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = min(self.asked + 1, 2)
        self._since = time.monotonic()
        self._pass_on()

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = max(self.asked, 1)
        self._pass_on()

    def _pass_on(self) -> None:
        if self.asked:
            self._send(signal.SIGTERM if self.asked == 1 else signal.SIGQUIT)

    def _send(self, number: signal.Signals) -> None:
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)


class AgentProcess:
    """A running agent."""

    def __init__(self, plan: Path, lock_fd: int, environment: Mapping[str, str]) -> None:
        """Start it.

        `-P` keeps the current directory out of its module path. It watches us and stops in order if we die.
        It holds the lock as long as it lives.
        """
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "ddpk8s_agent", "--plan", str(plan)),
                *("--parent", str(os.getpid()), "--keep-fd", str(lock_fd)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            pass_fds=[lock_fd],
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def lines(self) -> Iterator[tuple[Stream, str] | None]:
        """Yield its output line by line until it ends; None where nothing came for a while."""
        with selectors.DefaultSelector() as selector:
            assert self._process.stdout is not None
            assert self._process.stderr is not None
            selector.register(self._process.stdout, selectors.EVENT_READ, "stdout")
            selector.register(self._process.stderr, selectors.EVENT_READ, "stderr")
            rests: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
            while selector.get_map():
                ready = selector.select(_POLL_SECONDS)
                if not ready:
                    yield None
                for key, _events in ready:
                    stream: Stream = key.data
                    data = _read(key.fileobj)
                    *complete, rests[stream] = (rests[stream] + data).split(b"\n")
                    yield from ((stream, _text(line)) for line in complete)
                    if not data:
                        selector.unregister(key.fileobj)
                        if rests[stream]:
                            yield stream, _text(rests[stream])

    def wait(self) -> int:
        """Return its exit code, 128 + the signal if it was killed."""
        code = self._process.wait()
        return code if code >= 0 else 128 - code


def _read(file: "int | IO[bytes] | object") -> bytes:
    return os.read(file if isinstance(file, int) else file.fileno(), _CHUNK)  # type: ignore[attr-defined]


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")
