"""Workers' output: torchrun writes a file for each rank and stream, we follow and forward them."""

import time
from pathlib import Path

from ddpk8s_agent.bound import Bound
from ddpk8s_agent.console import Console
from ddpk8s_agent.progress import PREFIX, Progress
from ddpk8s_agent.tail import Tail, last_lines

STREAMS = ("stdout", "stderr")


def log_path(attempt_directory: Path, rank: int, stream: str) -> Path:
    """Return where the output of a rank is kept."""
    return attempt_directory / f"rank-{rank}.{stream}.log"


class WorkerLogs:
    """The output of this node's ranks in one attempt.

    Attributes:
        torchrun_directory: Where torchrun puts its files.
        lines: How many lines each rank has written so far.
    """

    def __init__(
        self, directory: Path, ranks: range, console: Console, progress: Progress, *, many: bool
    ) -> None:
        self.torchrun_directory = directory / "torchrun"
        self._directory = directory
        self._console = console
        self._progress = progress
        self._ranks = ranks
        self._many = many  # ranks in all, so that lines need the number of theirs
        self._tails: dict[tuple[int, str], Tail] = {}
        self._bounds: dict[tuple[int, str], Bound] = {}
        self.lines: dict[int, int] = {}

    @property
    def found_any(self) -> bool:
        """Whether torchrun has come so far as to start workers."""
        return bool(self._tails)

    def forward(self) -> bool:
        """Forward what came since the last call; return whether anything came."""
        self._discover()
        now = time.monotonic()
        came = False
        for (rank, stream), tail in self._tails.items():
            if lines := tail.read(now):
                came = True
                self._show(rank, stream, lines)
                self._bounds[rank, stream].keep(tail.position)
        return came

    def finish(self) -> None:
        """Forward all that is left, when the workers are gone."""
        self._discover()
        now = time.monotonic()
        for (rank, stream), tail in self._tails.items():
            self._show(rank, stream, tail.drain(now))
        if line := self._progress.flush():
            self._console.out(line)

    def last_words(self, rank: int, count: int) -> list[str]:
        """Return the last lines of a rank: of its stderr, or of its stdout if it wrote nothing there."""
        for stream in reversed(STREAMS):
            lines = last_lines(log_path(self._directory, rank, stream), count)
            if lines := [line for line in lines if not line.startswith(PREFIX)]:
                return lines
        return []

    def last_lines(self, rank: int, count: int) -> list[str]:
        """Return the last lines of a rank's stderr, where stacks are."""
        return last_lines(log_path(self._directory, rank, "stderr"), count, window=1 << 20)

    def _discover(self) -> None:
        """Open the files torchrun made, and give them names that people find."""
        if len(self._tails) == len(self._ranks) * len(STREAMS):
            return
        for found in self.torchrun_directory.glob("*/attempt_0/*/std*.log"):
            rank, stream = self._ranks[int(found.parent.name)], found.stem
            if (rank, stream) not in self._tails:
                self._tails[rank, stream] = Tail(found)
                path = log_path(self._directory, rank, stream)
                found.rename(path)
                self._bounds[rank, stream] = Bound(path)

    def _show(self, rank: int, stream: str, lines: list[str]) -> None:
        write = self._console.out if stream == "stdout" else self._console.err
        prefix = f"[rank {rank}] " if self._many else ""
        self.lines[rank] = self.lines.get(rank, 0) + len(lines)
        for line in lines:
            progress = self._progress.observe(line) if rank == 0 else None
            is_progress = rank == 0 and stream == "stdout" and line.startswith(PREFIX)
            write(line if is_progress else prefix + line)
            if progress:
                self._console.out(progress)
