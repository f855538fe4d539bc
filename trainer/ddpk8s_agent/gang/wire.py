"""Lines over TCP: one connection, read and written without ever waiting."""

import errno
import socket
from collections.abc import Iterator
from contextlib import suppress

from ddpk8s_agent.gang.messages import LONGEST

_CHUNK = 1 << 16
_LONGEST_QUEUE = 4 << 20
"""Whoever reads so slowly that more than this waits for it is cut off."""
_SILENT = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


class BrokenLinkError(Exception):
    """The connection is over; `silent` if the other side only stopped answering."""

    def __init__(self, why: str, *, silent: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.silent = silent


class Link:
    """One connection."""

    def __init__(self, sock: socket.socket, now: float) -> None:
        sock.setblocking(False)
        keep_alive(sock)
        self.socket = sock
        self.since = now
        self.lines = 0
        self._read = bytearray()
        self._write = bytearray()

    @property
    def wants_to_write(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._write)

    def receive(self) -> Iterator[bytes]:
        """Yield the lines that are complete.

        Raises:
            BrokenLinkError: The other side closed, or sends what is no line.
        """
        try:
            data = self.socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise BrokenLinkError(error.strerror or str(error), silent=error.errno in _SILENT) from error
        if not data:
            raise BrokenLinkError("it closed the connection")
        self._read += data
        while (end := self._read.find(b"\n")) >= 0:
            line = bytes(self._read[:end])
            del self._read[: end + 1]
            if len(line) > LONGEST:
                raise BrokenLinkError("a line that is too long")
            self.lines += 1
            yield line
        if len(self._read) > LONGEST:
            raise BrokenLinkError("a line that is too long")

    def send(self, data: bytes) -> None:
        """Queue data and send what goes at once.

        Raises:
            BrokenLinkError: The other side is gone, or reads too slowly.
        """
        self._write += data
        if len(self._write) > _LONGEST_QUEUE:
            raise BrokenLinkError("it reads too slowly")
        self.flush()

    def flush(self) -> None:
        """Send what goes at once.

        Raises:
            BrokenLinkError: The other side is gone.
        """
        try:
            while self._write:
                del self._write[: self.socket.send(memoryview(bytes(self._write[:_CHUNK])))]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise BrokenLinkError(error.strerror or str(error), silent=error.errno in _SILENT) from error

    def finish(self) -> None:
        """Send no more. Closing at once could destroy what was sent: it would if anything still came."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def discard(self) -> bool:
        """Throw away what came; return whether the other side has closed."""
        try:
            return not self.socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Close it."""
        with suppress(OSError):
            self.socket.close()


def keep_alive(sock: socket.socket) -> None:
    """Have the kernel find a dead peer in about ten seconds, idle or not; macOS lacks some of these."""
    options = (
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 5),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 2),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 10_000),
    )
    for level, name, value in options:
        with suppress(OSError, AttributeError):
            sock.setsockopt(level, getattr(socket, name), value)


def listen(port: int) -> socket.socket:
    """Listen on all addresses of this machine.

    Raises:
        OSError: The port is taken.
    """
    if socket.has_dualstack_ipv6():
        with suppress(OSError):  # a kernel without IPv6
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
    return socket.create_server(("", port), backlog=1024)
