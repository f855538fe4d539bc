"""Lets the main thread sleep until something happens: a signal, the end of a child, an order, a word of the shim."""

import os
import select
import signal
from contextlib import suppress


class Waker:
    """A pipe: whoever has something to tell writes a byte.

    Attributes:
        write_fd: For processes that are to wake us.
    """

    def __init__(self) -> None:
        self._read_fd, self.write_fd = os.pipe()
        for descriptor in (self._read_fd, self.write_fd):
            os.set_blocking(descriptor, False)

    def listen_to_signals(self) -> None:
        """Wake up for every signal that has a handler, and when a child ends. Main thread only."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.write_fd, warn_on_full_buffer=False)

    def wake(self) -> None:
        """Wake the sleeper, from any thread."""
        with suppress(OSError):  # full: it is about to wake up anyway
            os.write(self.write_fd, b"x")

    def wait(self, seconds: float) -> None:
        """Sleep until somebody wakes us, but no longer than so many seconds."""
        with suppress(OSError):
            if select.select([self._read_fd], [], [], seconds)[0]:
                os.read(self._read_fd, 4096)
