"""All connections of one agent, by number: lines in and out, and nobody who stays without saying hello."""

import errno
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from ddpk8s_agent.gang.fields import check
from ddpk8s_agent.gang.messages import VERSION, BadLineError, Message, decode, encode
from ddpk8s_agent.gang.wire import BrokenLinkError, Link

UPLINK = 0
"""The connection to the coordinator."""
_FIRST_LINE = 5.0
"""Who has not said hello by then is no agent."""
_STRANGERS = 64
"""So many connections may be open that have not said hello, besides members; the oldest makes room."""
_AT_ONCE = 16
_LAST_SECONDS = 0.5
_APART = 0.75
"""Heartbeats are sent no nearer to each other than this share of their interval, but they may arrive so."""
_HEAD: Message = {"v": VERSION, "attempt": -1, "node": 0}


class Links:
    """Serves connections; tells what came, and which one broke."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        got: Callable[[int, Message], None],
        broke: Callable[[int, BrokenLinkError], None],
        heartbeat: float,
        members: int = 1,
    ) -> None:
        self._selector, self._got, self._broke = selector, got, broke
        self._apart = _APART * heartbeat
        self._most_strangers = _STRANGERS + members  # all of them may come at once
        self._beaten: dict[int, float] = {}
        self._links: dict[int, Link] = {}
        self._finished: dict[
            int, tuple[Link, float]
        ] = {}  # no more is said, but the other side has not closed
        self._newest = self._ended = UPLINK

    def __contains__(self, conn: int) -> bool:
        return conn in self._links

    @property
    def unsent(self) -> bool:
        """Whether something waits to be sent."""
        return any(link.wants_to_write for link in self._links.values())

    def connected(self, sock: socket.socket) -> None:
        """Take the connection to the coordinator in."""
        self._add(UPLINK, sock)

    def accept(self, listener: socket.socket) -> None:
        """Take in who comes, some of them at a time."""
        for _ in range(_AT_ONCE):
            try:
                sock, _address = listener.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._make_room(0)
                return
            self._make_room(self._most_strangers - 1)
            self._newest += 1
            self._add(self._newest, sock)

    def _make_room(self, most: int) -> None:
        """Close the oldest connection that has not said hello, if there are more than so many."""
        strangers = [conn for conn, link in self._links.items() if conn != UPLINK and not link.lines]
        if len(strangers) > most:
            self.drop(strangers[0])

    def _add(self, conn: int, sock: socket.socket) -> None:
        self._links[conn] = Link(sock, time.monotonic())
        self._selector.register(sock, selectors.EVENT_READ, conn)

    def send(self, conn: int, message: Message) -> None:
        """Send a message; to who is gone, nothing."""
        link = self._links.get(conn)
        if link is None:
            return
        try:
            link.send(encode({**_HEAD, **message}))
        except BrokenLinkError as error:
            self._break(conn, error)
        except ValueError as error:
            self._break(conn, BrokenLinkError(str(error)))

    def serve(self, conn: int) -> None:
        """Read and write what goes at once."""
        if conn in self._finished and self._finished[conn][0].discard():
            self._forget(conn)
        link = self._links.get(conn)
        if link is None:
            return
        try:
            for line in link.receive():  # first, for what came counts even if nothing can be sent any more
                message = decode(line)
                check(message)
                if message["type"] != "HB" or self._is_news(conn):
                    self._got(conn, message)
            link.flush()
        except BadLineError as error:
            self._break(conn, BrokenLinkError(f"it sent {error}"))
        except BrokenLinkError as error:
            self._break(conn, error)

    def _is_news(self, conn: int) -> bool:
        """Return whether a heartbeat tells of this moment.

        After a stall those of several seconds come at once. They are old, and that they contradict what has
        happened since means nothing.
        """
        now = time.monotonic()
        if now - self._beaten.get(conn, float("-inf")) < self._apart:
            return False
        self._beaten[conn] = now
        return True

    def _break(self, conn: int, error: BrokenLinkError) -> None:
        self.drop(conn)
        self._broke(conn, error)

    def drop(self, conn: int) -> None:
        """End a connection; what was sent arrives."""
        link = self._links.pop(conn, None)
        self._beaten.pop(conn, None)
        if link is None:
            return
        with suppress(KeyError, ValueError):
            self._selector.unregister(link.socket)
        if not link.lines:
            link.close()
            return
        with suppress(BrokenLinkError):
            link.flush()
        link.finish()
        if len(self._finished) >= _STRANGERS:
            self._forget(next(iter(self._finished)))
        self._ended -= 1
        self._finished[self._ended] = link, time.monotonic() + _FIRST_LINE
        self._selector.register(link.socket, selectors.EVENT_READ, self._ended)

    def _forget(self, conn: int) -> None:
        link, _ = self._finished.pop(conn)
        self._selector.unregister(link.socket)
        link.close()

    def drop_silent_strangers(self) -> None:
        """Close connections that have not said hello in time, and those that are finished for long."""
        now = time.monotonic()
        for conn, link in list(self._links.items()):
            if conn != UPLINK and not link.lines and now - link.since > _FIRST_LINE:
                self.drop(conn)
        for conn, (_, until) in list(self._finished.items()):
            if now > until:
                self._forget(conn)

    def watch_writers(self) -> None:
        """Wait for room only where something waits to be sent."""
        for conn, link in self._links.items():
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.wants_to_write else 0)
            with suppress(KeyError, ValueError):
                if self._selector.get_key(link.socket).events != wanted:
                    self._selector.modify(link.socket, wanted, conn)

    def close(self) -> None:
        """Close all of them; the others have a moment to take what was sent."""
        for conn in list(self._links):
            self.drop(conn)
        end = time.monotonic() + _LAST_SECONDS
        while self._finished and time.monotonic() < end:
            time.sleep(0.01)
            for conn in list(self._finished):
                self.serve(conn)
        for conn in list(self._finished):
            self._forget(conn)
