"""Connections to the coordinator, made in the background: names may take long to resolve."""

import queue
import socket
import threading
from collections.abc import Callable
from typing import Any


class Dialer:
    """Makes one connection at a time, at a given moment; a result that comes too late is thrown away."""

    def __init__(self, address: tuple[str, int], timeout: float, wake: Callable[[], None]) -> None:
        self._address, self._timeout, self._wake = address, timeout, wake
        self._results: queue.SimpleQueue[tuple[int, socket.socket | str]] = queue.SimpleQueue()
        self._number = 0
        self._at: float | None = 0.0

    def plan(self, when: float) -> None:
        """Forget whatever is under way, and dial at a moment."""
        self._number += 1
        self._at = when

    def seconds(self, now: float, longest: float) -> float:
        """Return the time until it is due, at most `longest`."""
        return longest if self._at is None else min(longest, max(0.0, self._at - now))

    def due(self, now: float) -> bool:
        """Return whether it is time to dial; true once."""
        if self._at is None or now < self._at:
            return False
        self._at = None
        return True

    def dial(self) -> None:
        """Begin to connect."""
        self._number += 1
        threading.Thread(target=self._dial, args=(self._number,), name="dial", daemon=True).start()

    def take(self) -> socket.socket | str | None:
        """Return the connection, or why there is none; None while nothing is known."""
        while not self._results.empty():
            number, result = self._results.get()
            if number == self._number:
                return result
            if not isinstance(result, str):
                result.close()
        return None

    def _dial(self, number: int) -> None:
        self._results.put((number, connect(*self._address, self._timeout)))
        self._wake()


def connect(host: str, port: int, timeout: float) -> socket.socket | str:
    """Return a connection, or why there is none, with the address that was tried.

    The name is resolved anew each time: a replaced pod has another address, and for a while the old one may still
    be what the name says.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        return f"{host}:{port}: the name cannot be resolved ({why or error})"
    problems: dict[str, str] = {}
    for family, kind, protocol, _, address in found:
        try:
            return _connect((family, kind, protocol), address, timeout)
        except OSError as error:
            problems[str(address[0])] = (error.strerror or str(error)).lower()
    tried = "; ".join(
        f"{where + ': ' if where != host else ''}{problem}" for where, problem in problems.items()
    )
    return f"{host}:{port}: {tried or 'the name has no address'}"


def _connect(kind: tuple[int, int, int], address: Any, timeout: float) -> socket.socket:
    sock = socket.socket(*kind)
    try:
        sock.settimeout(timeout)
        sock.connect(address)
        if sock.getsockname() == sock.getpeername():
            # On one machine, a port that nobody listens on yet may be given to this very socket.
            raise ConnectionRefusedError(None, "connection refused")
    except OSError:
        sock.close()
        raise
    return sock
