"""Gangs take turns: all of them live at once, but only the one that holds the baton computes.

Each contender is a gang of its own, so that it runs as its users run it: in the main thread, with the settings of its
own processes. A gang that waits sleeps in a read and costs nothing. Blocks of different contenders so alternate within
seconds, and whatever else the machine does hits all of them alike.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from benchmarks.environment import PROCESSES, environments

_SOCKET = "BENCHMARK_SOCKET"
_QUIT = "quit"


class Baton:
    """A rank's end of the line to the one who hands the baton around."""

    def __init__(self) -> None:
        """Report for duty."""
        self._line = Client(os.environ[_SOCKET], "AF_UNIX")
        self._line.send(int(os.environ["RANK"]))
        self._cpu = 0.0

    def wait(self) -> str:
        """Sleep until it is this gang's turn and return which; the process ends when there is no more."""
        try:
            turn = str(self._line.recv())
        except EOFError:
            turn = _QUIT
        if turn == _QUIT:
            os._exit(0)  # in the middle of a training: no tidy end to wait for
        self._cpu = time.process_time()
        return turn

    def give_back(self, answer: float | None = None) -> None:
        """Say that the turn is over; without another answer, how many CPU seconds it took this rank."""
        self._line.send(time.process_time() - self._cpu if answer is None else answer)


@dataclass(frozen=True)
class Played:
    """A turn that is over.

    Attributes:
        seconds: From the first rank's start to the last one's end.
        answers: What the ranks said; CPU seconds, if nothing else was asked for.
        busy: CPU seconds of the whole machine meanwhile.
    """

    seconds: float
    answers: list[float]
    busy: float

    @property
    def foreign(self) -> float:
        """Share of the machine that other programs took meanwhile."""
        return max(0.0, self.busy - sum(self.answers)) / (self.seconds * (os.cpu_count() or 1))


class Players:
    """The gang of one contender, as the one who hands the baton around sees it."""

    def __init__(self, contender: str, work: Path, scratch: Path, mode: str = "blocks") -> None:
        """Start the gang; return when every rank has reported.

        Args:
            contender: Module in `benchmarks.contenders`.
            work: File that `workload.Work` reads.
            scratch: Directory for socket and logs.
            mode: `blocks`, `accuracy` or `own`, see `worker`.

        Raises:
            RuntimeError: a rank died.
        """
        self._contender = contender
        self._log = scratch / f"{contender}.log"
        address = str(scratch / f"{contender}.socket")
        Path(address).unlink(missing_ok=True)
        self._processes = []
        with Listener(address, "AF_UNIX") as listener, self._log.open("wb") as log:
            command = [sys.executable, "-m", "benchmarks.worker", contender, str(work), mode]
            for environment in environments(contender, scratch):
                environment[_SOCKET] = address
                process = subprocess.Popen(
                    command, cwd=scratch, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
                self._processes.append(process)
            self._lines = self._accept(listener)

    def play(self, turn: str = "") -> Played:
        """Give all ranks the baton, and wait until all gave it back."""
        busy, start = busy_seconds(), time.perf_counter()
        for line in self._lines:
            line.send(turn)
        answers = [self._receive(line) for line in self._lines]
        return Played(time.perf_counter() - start, answers, busy_seconds() - busy)

    def close(self) -> None:
        """End the gang."""
        for line in self._lines:
            line.close()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _accept(self, listener: Listener) -> list[Connection]:
        # A rank that dies before it reports must not leave us waiting: the listener's own socket has no timeout.
        listener._listener._socket.settimeout(1.0)  # type: ignore[attr-defined]
        lines: dict[int, Connection] = {}
        while len(lines) < PROCESSES:
            try:
                line = listener.accept()
            except TimeoutError:
                self._check()
                continue
            lines[line.recv()] = line
        return [lines[rank] for rank in range(PROCESSES)]

    def _receive(self, line: Connection) -> float:
        while not line.poll(1.0):
            self._check()
        try:
            return float(line.recv())
        except EOFError:
            self._check(lost=True)
            raise

    def _check(self, *, lost: bool = False) -> None:
        if lost:
            time.sleep(1.0)  # its exit code comes a moment after its line is cut
        codes = [process.poll() for process in self._processes]
        if lost or any(code is not None for code in codes):
            for process in self._processes:
                process.kill()
            tail = "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:])
            raise RuntimeError(f"{self._contender} died (exit codes {codes}):\n{tail}")


def busy_seconds() -> float:
    """Return the seconds that the processors were busy since the machine started, stolen ones too; 0 if unknown."""
    try:
        fields = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
