"""Who should not be there: strangers at the port, agents of other runs and plans, late ones."""

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from ddpk8s_agent.preflight import free_port
from tests.agent.gang import Gang
from tests.agent.harness import until

WAITS = "touch(f'begun-{RANK}-{ATTEMPT}'); wait_for('finish')"
HELLO = {"v": 1, "type": "HELLO", "attempt": 0, "node": 1, "nnodes": 2, "nproc": 2, "inc": "stranger"}
LEDGER = {"token": "run-1", "base": -1, "attempt": -1, "records": {}}


@pytest.fixture
def running(gang: Gang) -> Iterator[Gang]:
    """A gang that trains, and must go on training."""
    gang.script(WAITS)
    gang.start_all()
    gang.wait(*(f"begun-{rank}-0" for rank in range(4)))
    yield gang
    gang.touch("finish")
    assert gang.outcome() == ([0, 0], {0: "trained"}), gang.all_err()
    assert "silent" not in gang.all_err()
    assert "Traceback" not in gang.all_err()


def connect(gang: Gang) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", gang.document["gangPort"]), timeout=20)
    sock.settimeout(20)
    return sock


def closed(sock: socket.socket) -> bytes:
    """Return what came until the other side closed the connection."""
    content = b""
    try:
        while data := sock.recv(1 << 16):
            content += data
    except ConnectionError:
        pass
    sock.close()
    return content


def tell(gang: Gang, message: Any) -> bytes:
    """Say one line to the gang's port; return the answer."""
    sock = connect(gang)
    sock.sendall(json.dumps(message).encode() + b"\n")
    return closed(sock)


def test_the_gang_goes_on_when_strangers_send_rubbish(running: Gang) -> None:
    rubbish = random.Random(7)
    for data in (
        b"GET / HTTP/1.1\r\nHost: gang\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",  # a TLS hello
        b"\n" * 1000,
        b"[" * 60_000 + b"\n",
        b"9" * 60_000 + b"\n",
        b'{"v": 1}\n',
        *(rubbish.randbytes(5000) + b"\n" for _ in range(20)),
    ):
        sock = connect(running)
        sock.sendall(data)
        assert closed(sock) == b""


def test_a_line_of_a_megabyte_is_cut_off(running: Gang) -> None:
    sock, sent = connect(running), 0
    with suppress(OSError):
        while sent < 1 << 30:
            sent += sock.send(b"x" * (1 << 20))
    assert sent < 1 << 26
    assert closed(sock) == b""


@pytest.mark.parametrize(
    "change",
    [
        {"token": "run-2"},
        {"token": "\ud800"},
        {"token": None},
        {"token": ["run-1"]},
        {"token": "run-1", "node": 10**300},
        {"token": "run-1", "ledger": {**LEDGER, "attempt": float("inf")}},
        {"token": "run-1", "ledger": []},
        {"token": "run-1", "ledger": LEDGER, "silent": "long"},
        {"token": "run-1", "ledger": LEDGER, "prepared": "much", "spec": None},
        {"type": "HB", "ranks": [[1]]},
        {"type": "DONE", "ok": True, "evidence": 5},
    ],
)
def test_who_says_nothing_sensible_is_refused_and_nothing_happens(running: Gang, change: Any) -> None:
    answer = tell(running, {**HELLO, **change})
    assert not answer or json.loads(answer)["type"] == "REJECT"


def test_a_stranger_is_told_of_once_a_minute(running: Gang) -> None:
    for _ in range(20):
        assert b"it belongs to another run" in tell(running, {**HELLO, "token": "other", "ledger": LEDGER})
    assert running.err().count("refused an agent of another run, which calls itself node 1") == 1


def test_who_connects_and_says_nothing_or_speaks_slowly_is_cut_off(running: Gang) -> None:
    mute, slow, half = connect(running), connect(running), connect(running)
    half.shutdown(socket.SHUT_WR)
    assert closed(half) == b""
    end = time.monotonic() + 20
    try:
        while time.monotonic() < end:
            slow.sendall(b"x")
            time.sleep(0.1)
    except OSError:
        pass
    assert time.monotonic() < end, "a byte now and then kept the connection"
    assert closed(mute) == b""


def test_the_gang_goes_on_with_a_thousand_connections(running: Gang) -> None:
    flood = """
        import socket, sys, time
        held = []
        for _ in range(1000):
            try: held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5))
            except OSError: pass
        print(len(held), flush=True)
        time.sleep(3)
    """
    port = str(running.document["gangPort"])
    code = "\n".join(line[8:] for line in flood.splitlines())
    done = subprocess.run([sys.executable, "-c", code, port], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 900
    files = os.listdir(f"/proc/{running.nodes[0].pid}/fd")  # noqa: PTH208
    assert len(files) < 200


def test_late_joiners_get_in_while_connections_are_made_all_the_time(gang: Gang) -> None:
    gang.script("")
    gang.start_node(0)
    gang.said("waiting for node rank 1")
    flood = (
        "import socket, sys\nwhile True: socket.create_connection(('127.0.0.1', int(sys.argv[1]))).close()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", flood, str(gang.document["gangPort"])], stderr=subprocess.DEVNULL
    ) as other:
        try:
            gang.start_node(1)
            assert gang.outcome() == ([0, 0], {0: "trained"})
        finally:
            other.kill()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nnodes": 3}, "spec.topology.nnodes differs: 3 on node 1, 2 on node 0"),
        ({"nprocPerNode": 4}, "spec.topology.nprocPerNode differs: 4 on node 1, 2 on node 0"),
        ({"maxRestarts": 9}, "the job (its command, environment or settings) differs: "),
    ],
)
def test_a_node_with_another_plan_ends_with_78_and_both_values(
    gang: Gang, change: dict[str, Any], said: str
) -> None:
    gang.script(WAITS)
    gang.start_node(0)
    gang.start_node(1, **change)
    ended = gang.end_node(1)
    assert ended.code == 78
    assert said in ended.word["message"]
    assert "on node 1, " in ended.word["message"]
    gang.said(said)  # node 0 says it as well, and waits on
    gang.start_node(1)
    gang.touch("finish")
    assert gang.outcome() == ([0, 0], {0: "trained"})


def test_a_node_of_another_run_is_refused_and_waits(gang: Gang) -> None:
    gang.script(WAITS)
    gang.start_node(0)
    other = gang.twin(1, runId="run-2")
    other.said("node 0 does not let this node in: it belongs to another run", 1)
    gang.start_node(1)
    gang.touch("finish")
    assert gang.outcome() == ([0, 0], {0: "trained"})
    other.nodes[1].terminate()
    assert other.nodes[1].wait() == 143


def test_a_late_joiner_waits_and_the_attempt_goes_on_when_its_node_rank_is_taken(running: Gang) -> None:
    other = running.twin(1)
    other.said("node rank 1 is taken by an agent that lives; trying again", 1)
    assert other.nodes[1].poll() is None
    other.nodes[1].terminate()
    assert other.nodes[1].wait() == 143
    assert not other.processes()


def test_the_late_joiner_takes_the_place_when_the_holder_of_its_rank_is_killed(gang: Gang) -> None:
    gang.timing["duplicate_retry"] = 0.2
    gang.trains().train_all()
    other = gang.twin(1)
    other.said("node rank 1 is taken", 1)
    gang.kill_node(1)
    assert other.end_node(1).code == 0, other.err(1)
    assert gang.end_node(0).code == 0
    assert gang.kinds() == {0: "free", 1: "trained"}


def test_the_same_problem_is_said_once_when_a_node_cannot_start_for_a_while(gang: Gang) -> None:
    gang.timing["say_waiting"] = 60
    gang.document["masterPort"] = free_port()
    gang.script("")
    gang.start_node(0)
    until(lambda: gang_listens(gang), "node 0's port")
    with socket.create_server(("", gang.document["masterPort"])):
        gang.start_node(1)
        gang.said("node 0 cannot start yet: port")
        time.sleep(2.5)  # it has tried again, and again
        assert gang.err().count("cannot start yet") == 1
    assert gang.outcome() == ([0, 0], {0: "trained"})


def gang_listens(gang: Gang) -> bool:
    try:
        connect(gang).close()
    except OSError:
        return False
    return True
