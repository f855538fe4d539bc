"""One agent's process: started in a session of its own, its output read as whole lines."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

PROGRESS_PREFIX = "ddpk8s-progress: "
AGENT_PREFIX = "ddpk8s-agent: "
STOPPED = 143
_CHUNK = 1 << 16

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class Line:
    """A line of an agent's output: its own or a worker's, without the end of the line."""

    node: int
    stream: Stream
    text: str


@dataclass(frozen=True)
class Start:
    """How an agent is started, and started again.

    Attributes:
        command: Its command line.
        environment: All of its environment.
        keep_fd: File descriptor of the lock, which it holds as long as it lives.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    keep_fd: int


def agent_command(plan: Path, keep_fd: int) -> tuple[str, ...]:
    """Return the command line of the agent of a plan.

    `-P` keeps the current directory out of its module path. It watches us and stops in order if we die.
    """
    return (
        *(sys.executable, "-P", "-m", "ddpk8s_agent", "--plan", str(plan)),
        *("--parent", str(os.getpid()), "--keep-fd", str(keep_fd)),
    )


class Pipe:
    """One stream of an agent's output; selectors take it as a file."""

    def __init__(self, stream: Stream, file: IO[bytes]) -> None:
        self.stream: Stream = stream
        self.open = True
        self._file = file
        self._rest = b""

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._file.fileno()

    def read(self) -> list[str]:
        """Return the lines that are complete; at the end the rest too, and `open` is False from then on."""
        data = os.read(self.fileno(), _CHUNK)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data:
            self.open = False
            lines += [self._rest] if self._rest else []
        return [line.decode("utf-8", errors="replace") for line in lines]

    def close(self) -> None:
        """Let go of the descriptor."""
        self._file.close()


class AgentProcess:
    """A running agent."""

    def __init__(self, start: Start) -> None:
        """Start it; Ctrl-C of the terminal does not reach it but through us."""
        self._process = subprocess.Popen(
            start.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(start.environment),
            pass_fds=[start.keep_fd],
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.pipes = (Pipe("stdout", self._process.stdout), Pipe("stderr", self._process.stderr))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return its exit code, of a signal the negative number; None while it runs or has output unread."""
        return None if any(pipe.open for pipe in self.pipes) else self._process.poll()
