"""Watches from outside what runs, so that two gangs at once cannot go unseen."""

import os
import threading
import time
from pathlib import Path

from tests.agent.gang import Gang
from tests.agent.harness import alive

_EVERY_SECONDS = 0.03


class Recorder:
    """Looks at the workers of a gang all the time.

    Attributes:
        overlaps: Attempts that were seen at the same moment, with the pids that show it.
        seen: Attempts that were seen at all, with the namespaces of their networks.
    """

    def __init__(self, gang: Gang) -> None:
        self.overlaps: list[str] = []
        self.seen: dict[int, set[str]] = {}
        self._gang = gang
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching; fail if two gangs were seen."""
        self._over.set()
        self._thread.join()
        assert not self.overlaps, f"two gangs at once: {self.overlaps}"

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            pids = {pid: attempt for pid in self._gang.processes() if (attempt := self._attempt(pid)) >= 0}
            for pid, attempt in pids.items():
                self.seen.setdefault(attempt, set()).add(_network(pid))
            if len(set(pids.values())) > 1:
                time.sleep(_EVERY_SECONDS)  # one may have ended while we looked for the others
                left = {pid: attempt for pid, attempt in pids.items() if alive(pid)}
                if len(set(left.values())) > 1:
                    self.overlaps.append(str(left))

    def _attempt(self, pid: int) -> int:
        """Return the attempt of a process; -1 if it is gone."""
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return -1
        found = [each[15:] for each in environment if each.startswith(b"DDPK8S_ATTEMPT=")]
        return int(found[0]) if found else -1


def _network(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115 - it points to nothing
    except OSError:
        return ""
