"""Lines over real sockets, and what may come as one."""

import json
import select
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ddpk8s_agent.gang.dialer import connect
from ddpk8s_agent.gang.fields import check
from ddpk8s_agent.gang.links import UPLINK, Links
from ddpk8s_agent.gang.messages import LONGEST, BadLineError, Message, decode, encode
from ddpk8s_agent.gang.wire import BrokenLinkError, Link, keep_alive, listen
from ddpk8s_agent.preflight import free_port

LEDGER = {"token": "run", "base": -1, "attempt": -1, "records": {}}
HELLO = {"v": 1, "type": "HELLO", "node": 1, "attempt": -1, "inc": "a", "token": "run", "ledger": LEDGER}


@pytest.fixture
def pair() -> Iterator[tuple[Link, socket.socket]]:
    """A link, and the other end of it."""
    listener = listen(0)
    port = listener.getsockname()[1]
    client = socket.create_connection(("127.0.0.1", port))
    served, _ = listener.accept()
    link = Link(served, 0.0)
    yield link, client
    for each in (link, client, listener):
        each.close()


def flood(link: Link) -> None:
    for _ in range(10_000):
        link.send(b"x" * LONGEST)


def receive(link: Link, count: int) -> list[bytes]:
    """Return so many lines."""
    lines: list[bytes] = []
    while len(lines) < count:
        assert select.select([link.socket], [], [], 10)[0], f"only {len(lines)} lines came"
        lines += link.receive()
    return lines


def test_lines_come_whole_when_they_are_sent_in_pieces(pair: tuple[Link, socket.socket]) -> None:
    link, other = pair
    for piece in (b"on", b"e\ntwo", b"\n\nfo", b"ur\n"):
        other.sendall(piece)
    assert receive(link, 4) == [b"one", b"two", b"", b"four"]
    assert link.lines == 4


def test_the_longest_line_comes_and_a_longer_one_breaks_the_link(pair: tuple[Link, socket.socket]) -> None:
    link, other = pair
    other.sendall(b"x" * LONGEST + b"\n")
    assert receive(link, 1) == [b"x" * LONGEST]
    other.sendall(b"x" * (LONGEST + 1))
    with pytest.raises(BrokenLinkError, match="too long"):
        receive(link, 1)


def test_a_link_whose_reader_is_too_slow_breaks_and_never_blocks(pair: tuple[Link, socket.socket]) -> None:
    link, _ = pair
    with pytest.raises(BrokenLinkError, match="reads too slowly"):
        flood(link)


def test_it_is_no_silence_when_the_other_side_closed(pair: tuple[Link, socket.socket]) -> None:
    link, other = pair
    other.close()
    with pytest.raises(BrokenLinkError) as caught:
        receive(link, 1)
    assert not caught.value.silent


@pytest.fixture
def links(pair: tuple[Link, socket.socket]) -> Iterator[tuple[Links, list[Message], socket.socket]]:
    """All links of an agent, one of them; what came by it; and the other end of it."""
    link, other = pair
    came: list[Message] = []
    with selectors.DefaultSelector() as selector:
        links = Links(selector, lambda _conn, message: came.append(message), lambda *_: None, heartbeat=0.4)
        links.connected(link.socket)
        yield links, came, other
        links.close()


def serve(links: Links, done: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not done():
        assert time.monotonic() < end
        links.serve(UPLINK)
        time.sleep(0.01)


def test_what_was_sent_arrives_when_the_other_side_still_sends(
    links: tuple[Links, list[Message], socket.socket],
) -> None:
    served, came, other = links
    other.sendall(encode(HELLO))
    serve(served, lambda: bool(came))
    served.send(UPLINK, {"type": "CUT"})
    other.sendall(encode(HELLO) * 10)  # it is not read before the end
    served.drop(UPLINK)
    other.sendall(encode(HELLO) * 10)
    assert decode(other.makefile("rb").readline())["type"] == "CUT"
    assert other.recv(1) == b"", "an end, and no reset"


def test_of_heartbeats_that_come_at_once_one_counts(
    links: tuple[Links, list[Message], socket.socket],
) -> None:
    served, came, other = links
    beat = encode({**HELLO, "type": "HB"})
    other.sendall(beat * 5 + encode({**HELLO, "type": "READY"}))
    serve(served, lambda: came[-1:] != [] and came[-1]["type"] == "READY")
    assert [message["type"] for message in came] == ["HB", "READY"]
    time.sleep(0.4)
    other.sendall(beat)
    serve(served, lambda: len(came) == 3)


def test_a_dead_peer_is_found_by_the_kernel_idle_or_not(pair: tuple[Link, socket.socket]) -> None:
    link, _ = pair
    keep_alive(link.socket)
    assert link.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert link.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
    idle, interval, count = (
        link.socket.getsockopt(socket.IPPROTO_TCP, option)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    )
    assert idle + interval * count < 12


def test_the_address_that_was_tried_is_told_when_nobody_listens() -> None:
    port = free_port()
    assert connect("127.0.0.1", port, 1.0) == f"127.0.0.1:{port}: connection refused"
    said = connect("localhost", port, 1.0)
    assert isinstance(said, str)
    assert said.startswith(f"localhost:{port}: ")
    assert "127.0.0.1: connection refused" in said


def test_the_name_is_told_when_it_cannot_be_resolved() -> None:
    said = connect("nobody.invalid", 1, 1.0)
    assert isinstance(said, str)
    assert said.startswith("nobody.invalid:1: the name cannot be resolved (")
    assert "the name cannot be resolved" in str(connect("a" * 70 + ".invalid", 1, 1.0))


def test_a_message_is_the_same_after_encoding_and_decoding() -> None:
    message = {**HELLO, "why": "ü\n\u2028 \\ud800"}
    assert decode(encode(message).rstrip(b"\n")) == message
    assert encode(message).count(b"\n") == 1


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(ValueError, match="HELLO of"):
        encode({**HELLO, "why": "x" * LONGEST})


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"[" * 60_000,
        b'{"v": 1}',
        b'{"v": 1, "type": 5, "node": 0, "attempt": 0}',
        b'{"v": 2, "type": "HB", "node": 0, "attempt": 0}',
        b'{"v": 1, "type": "HB", "node": "0", "attempt": 0}',
        b'{"v": 1, "type": "HB", "node": 0, "attempt": NaN}',
        b'{"v": 1, "type": "HB", "node": 0, "attempt": 0, "why": "\\uD800"}',
        b"9" * 10_000,
    ],
)
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(BadLineError):
        decode(line)


@pytest.mark.parametrize(
    "change",
    [
        {"ledger": None},
        {"ledger": {**LEDGER, "records": {"0": {"kind": "gift"}}}},
        {"ledger": {**LEDGER, "attempt": float("inf")}},
        {"ledger": {**LEDGER, "end": {"code": None}}},
        {"inc": "two\nlines"},
        {"token": 5},
        {"nnodes": "2"},
        {"nnodes": True},
        {"prepared": 1 << 80},
        {"silent": ["a"]},
        {"silent": ["a", float("nan")]},
        {"evidence": []},
        {"type": "HB", "ranks": [[0, 1, "2", True]]},
        {"type": "HB", "ranks": 5},
        {"type": "ACK", "of": "0"},
        {"type": "EXIT"},
        {"type": "EXIT", "code": None},
        {"type": "PREPARE", "port": 1},
        {"type": "VERDICT", "verdict": {}, "ledger": LEDGER, "pause": "soon", "restarts": 0},
    ],
)
def test_fields_that_the_machines_cannot_take_are_refused(change: dict[str, Any]) -> None:
    check(HELLO)
    with pytest.raises(BadLineError):
        check({**HELLO, **change})


def test_fields_of_later_versions_do_no_harm() -> None:
    check(json.loads(json.dumps({**HELLO, "mood": [1, {"good": None}], "silent": None, "type": "SONG"})))
    check({**HELLO, "mood": 1})
