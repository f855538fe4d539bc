"""The one writer to our stdout and stderr.

A thread of its own: whoever reads us may be slow, stopped or gone, and that must never keep the agent from
watching the gang. What does not fit is left out and counted; the workers' own files have it all.
"""

import os
import select
import threading
import time
from collections import deque

PREFIX = "ddpk8s-agent: "
_STDOUT, _STDERR = 1, 2
_LIMIT_BYTES = 16 << 20


class Console:
    """Queues lines and writes them in order. Lines are written whole."""

    def __init__(self) -> None:
        self._queue: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._dropped = 0
        self._ready = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="console", daemon=True)
        self._thread.start()

    def out(self, line: str) -> None:
        """Write a line to stdout."""
        self._put(_STDOUT, line)

    def err(self, line: str) -> None:
        """Write a line to stderr."""
        self._put(_STDERR, line)

    def say(self, text: str) -> None:
        """Tell something of our own, on stderr, each line with the agent's name before it."""
        for line in text.splitlines():
            self._put(_STDERR, PREFIX + line)

    def mistake(self, message: str, hint: str | None) -> None:
        """Tell of a mistake of the user's."""
        self.say(f"error: {message}" + (f"\n  hint: {hint}" if hint else ""))

    def close(self, seconds: float = 5.0) -> None:
        """Write what is queued, but wait no longer than `seconds` for whoever reads."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join(seconds)

    def _put(self, stream: int, line: str) -> None:
        data = line.encode("utf-8", errors="replace") + b"\n"
        with self._ready:
            if self._size + len(data) > _LIMIT_BYTES:
                self._dropped += 1
                return
            if self._dropped:
                notice = f"{PREFIX}{self._dropped} lines left out: whoever reads this output is too slow\n"
                self._queue.append((_STDERR, notice.encode()))
                self._dropped = 0
            self._queue.append((stream, data))
            self._size += len(data)
            self._ready.notify()

    def _work(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self._closing:
                    self._ready.wait()
                if not self._queue:
                    return
                stream, data = self._queue.popleft()
            _write(stream, data)
            with self._ready:
                self._size = max(0, self._size - len(data))


def _write(stream: int, data: bytes) -> None:
    """Write all of `data`; a reader that is gone is no error of ours."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(stream, view) :]
        except BlockingIOError:
            select.select([], [stream], [], 1.0)
            time.sleep(0)
        except OSError:
            return
