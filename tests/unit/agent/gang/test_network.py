"""The thread around the machines: two real ones, over real sockets."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.coordinator import Coordinator
from ddpk8s_agent.gang.deciding import Decider
from ddpk8s_agent.gang.joining import Identity, State
from ddpk8s_agent.gang.ledger import Ledger
from ddpk8s_agent.gang.member import Member
from ddpk8s_agent.gang.network import Network
from ddpk8s_agent.gang.store import Store
from ddpk8s_agent.gang.timing import Timing
from ddpk8s_agent.gang.wire import listen
from ddpk8s_agent.preflight import free_port

TIMING = Timing(heartbeat=0.2, peer_deadline=2.0, say_waiting=0.5, dial=(0.05, 0.2), connect=1.0)


class Nodes:
    """Networks of this test, by node rank."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.networks: dict[int, Network] = {}
        self.lines: dict[int, list[str]] = {0: [], 1: []}
        self._directory = directory

    def start(self, node: int, address: str = "127.0.0.1") -> Network:
        """Start the thread of a node."""
        ledger, now = Ledger("run"), time.monotonic()
        identity = Identity("run", node, 2, 1, "same", f"inc-{node}")
        decider = Decider(max_restarts=0, sees_progress=False, sees_start=False, nnodes=2, nproc=1)
        coordinator = Coordinator(identity, ledger, TIMING, decider, range(0), now) if node == 0 else None
        store = Store(self._directory / f"{node}.json", None, self.lines[node].append)
        self.networks[node] = Network(
            Member(identity, ledger, TIMING, now),
            coordinator,
            listen(self.port) if node == 0 else None,
            (address, self.port),
            TIMING,
            store,
            self.lines[node].append,
        )
        return self.networks[node]

    def order(self, node: int, kind: type[e.Action]) -> Any:
        """Return the next order of a kind."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            order = self.networks[node].next(0.1)
            if isinstance(order, kind):
                return order
        raise AssertionError(f"no {kind.__name__} of node {node}: {self.lines}")

    def start_attempt(self) -> None:
        """Bring both nodes to their start."""
        for node in range(2):
            arm = self.order(node, e.Arm)
            self.networks[node].post(e.Armed(arm.rdzv))
        for node in range(2):
            self.order(node, e.Start)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path)
    yield nodes
    for network in nodes.networks.values():
        network.close()


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("first", [0, 1])
def test_two_nodes_start_together_whoever_comes_first(nodes: Nodes, first: int) -> None:
    nodes.start(first)
    time.sleep(0.3)
    nodes.start(1 - first)
    nodes.start_attempt()


def test_all_are_told_how_it_ended_node_0_last(nodes: Nodes) -> None:
    for node in range(2):
        nodes.start(node)
    nodes.start_attempt()
    evidence = {"launcher": "finished", "launcher_code": 0, "ranks": [0]}
    nodes.networks[0].post(e.Ended(ok=True, evidence=evidence))
    nodes.networks[1].post(e.Ended(ok=True, evidence={**evidence, "ranks": [1]}))
    assert nodes.order(1, e.Exit).code == 0
    assert nodes.order(0, e.Exit).code == 0


def test_what_was_posted_last_is_still_sent_when_it_closes_at_once(nodes: Nodes) -> None:
    for node in range(2):
        nodes.start(node)
    nodes.start_attempt()
    leaving = nodes.networks.pop(1)
    leaving.post(e.StopAsked())
    leaving.close()
    nodes.order(0, e.Drain)
    coordinator = nodes.networks[0].coordinator
    assert coordinator is not None
    until(lambda: coordinator._ending.stopping == {1})


def test_it_is_said_where_node_0_is_looked_for_but_not_in_the_first_moment(nodes: Nodes) -> None:
    nodes.start(1)
    time.sleep(1.0)
    assert nodes.lines[1] == []
    until(lambda: nodes.lines[1])
    where = f"127.0.0.1:{nodes.port}: connection refused"
    assert nodes.lines[1][0] == f"cannot reach the agent of node 0 yet, trying again: {where}"
    nodes.start(0)
    nodes.start_attempt()


def test_strangers_make_room_for_each_other_and_members_stay(nodes: Nodes) -> None:
    for node in range(2):
        nodes.start(node)
    nodes.start_attempt()
    strangers = [socket.create_connection(("127.0.0.1", nodes.port)) for _ in range(200)]
    strangers[0].settimeout(10)
    assert strangers[0].recv(1) == b"", "the oldest is closed"
    time.sleep(TIMING.peer_deadline + 0.5)
    assert nodes.networks[1].next(0.0) is None, "the member runs on"
    assert nodes.networks[0].next(0.0) is None
    for each in strangers:
        each.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_ends_the_agent_and_does_not_leave_it_deaf(nodes: Nodes) -> None:
    network = nodes.start(0)
    until(lambda: network.member.state is State.WAIT)
    network._post(network.member, e.Received({"type": "VERDICT"}))  # no message that is sent can do it
    assert nodes.order(0, e.Exit).code == 70
