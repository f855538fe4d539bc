"""Networks that fail, in real namespaces: silence, partitions, names that point to where a node was."""

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import pytest

from ddpk8s_agent.gang.timing import Timing
from tests.agent.gang import Gang
from tests.agent.harness import until
from tests.agent.namespaces import Switch, available, mount, mounts

needs_network = pytest.mark.skipif(bool(available()), reason=available())
needs_mounts = pytest.mark.skipif(bool(mounts()), reason=mounts())


@pytest.fixture
def switch(watched: Gang) -> Iterator[Switch]:
    """Two nodes, each with a network of its own."""
    switch = Switch()
    try:
        for node in range(2):
            watched.prefix[node] = switch.add(node)
        watched.document["masterAddr"] = switch.address(0)
        watched.timing |= {"margin": 0.5, "connect": 0.5, "acknowledge": 1.0, "look": 0.5}
        yield switch
    finally:
        watched.clean_up()
        switch.close()


def silent_seconds(gang: Gang, switch: Switch, node: int) -> float:
    """Unplug a node; return after how many seconds node 0 says that node 1 is silent."""
    began = time.monotonic()
    switch.unplug(node)
    gang.said("node 1 is silent")
    return time.monotonic() - began


@needs_network
@pytest.mark.parametrize("node", [0, 1])
def test_the_loss_is_found_within_the_deadline_and_free_when_a_node_is_cut_off(
    watched: Gang, switch: Switch, node: int
) -> None:
    gang = watched.trains().train_all()
    # A busy machine adds to it; by the kernel's own defaults it would take a quarter of an hour.
    assert silent_seconds(gang, switch, node) < 4 * gang.timing["peer_deadline"]
    gang.said("lost the agent of node 0", node=1)
    until(lambda: not gang.processes(), "the end of the workers on both sides")
    switch.plug(node)
    assert gang.outcome() == ([0, 0], {0: "free", 1: "trained"})
    assert "node 1 has been silent: the node, its network or its agent is gone" in gang.why()
    assert "a lost node is not charged" in gang.err()


@needs_network
@pytest.mark.parametrize("node", [0, 1])
def test_the_attempt_ends_on_both_sides_when_one_cannot_hear_the_other(
    watched: Gang, switch: Switch, node: int
) -> None:
    gang = watched.trains().train_all()
    switch.mute(node, towards=1 - node)
    until(lambda: not gang.processes(), "the end of the workers on both sides")
    switch.unmute(node, towards=1 - node)
    codes, kinds = gang.outcome()
    assert codes == [0, 0]
    assert kinds.pop(max(kinds)) == "trained"
    assert set(kinds.values()) == {"free"}


@needs_network
@pytest.mark.gang
def test_the_loss_is_found_within_seconds_with_the_defaults(watched: Gang, switch: Switch) -> None:
    gang = watched
    gang.timing.clear()
    gang.trains().train_all()
    assert 5 < silent_seconds(gang, switch, 1) < 4 * Timing().peer_deadline
    switch.plug(1)
    assert gang.outcome() == ([0, 0], {0: "free", 1: "trained"}), f"{gang.why()}\n{gang.all_err()}"


@needs_network
def test_it_goes_on_when_a_node_is_cut_off_for_less_than_the_deadline(watched: Gang, switch: Switch) -> None:
    gang = watched
    gang.timing |= {"heartbeat": 0.5, "peer_deadline": 6.0}
    gang.script("touch(f'begun-{RANK}-{ATTEMPT}'); wait_for('finish')")
    gang.start_all()
    gang.wait(*(f"begun-{rank}-0" for rank in range(4)))
    switch.unplug(1)
    time.sleep(2.5)
    switch.plug(1)
    gang.touch("finish")  # what is said now comes after all heartbeats that did not get through
    assert gang.outcome() == ([0, 0], {0: "trained"}), gang.all_err()


@needs_network
def test_the_old_agent_waits_and_never_starts_when_its_network_heals_after_it_was_replaced(
    watched: Gang, switch: Switch
) -> None:
    gang = watched
    gang.script("touch(f'begun-{RANK}-{ATTEMPT}', os.getpid()); wait_for(f'finish-{ATTEMPT}')")
    gang.start_all()
    gang.wait(*(f"begun-{rank}-0" for rank in range(4)))
    switch.unplug(1)
    gang.said("node 1 is silent")
    new = gang.twin(1, switch.add(2))
    gang.wait(*(f"begun-{rank}-1" for rank in range(4)))
    switch.plug(1)
    gang.said("node rank 1 is taken by an agent that lives", node=1)
    gang.touch("finish-1")
    assert (gang.end_node(0).code, new.end_node(1).code) == (0, 0)
    assert gang.kinds() == {0: "free", 1: "trained"}
    assert gang.end_node(1).code == 0, "it reads on the volume that the job is over"
    assert not list(gang.directory.glob("begun-*-2"))
    assert gang.processes() == []


@needs_network
def test_no_second_gang_starts_when_node_0_is_replaced_while_the_old_one_is_cut_off(
    watched: Gang, switch: Switch
) -> None:
    gang = watched
    hosts = gang.directory / "hosts"
    hosts.write_text(f"{switch.address(0)} coordinator\n")
    gang.document["masterAddr"] = "coordinator"
    gang.prefix[1] = [*gang.prefix[1], *mount(hosts, "/etc/hosts")]
    gang.trains().train_all()
    switch.unplug(0)
    new = gang.twin(0, switch.add(2))
    hosts.write_text(f"{switch.address(2)} coordinator\n")
    assert (new.end_node(0).code, gang.end_node(1).code) == (0, 0), gang.all_err() + new.all_err()
    switch.plug(0)  # the old one sees nobody come back to it
    gang.nodes[0].terminate()
    assert gang.end_node(0).code == 143
    assert gang.kinds() == {0: "free", 1: "trained"}
    assert gang.processes() == []


@needs_network
@needs_mounts
def test_it_dials_on_and_says_where_when_the_name_of_node_0_has_its_old_address(
    watched: Gang, switch: Switch
) -> None:
    gang = watched
    hosts = gang.directory / "hosts"
    hosts.write_text(f"{switch.address(8)} coordinator\n")  # nobody has it any more
    gang.document["masterAddr"] = "coordinator"
    gang.prefix[1] = [*gang.prefix[1], *mount(hosts, "/etc/hosts")]
    gang.script("")
    gang.start_all()
    where = f"coordinator:{gang.document['gangPort']}: {switch.address(8)}: "
    gang.said(f"cannot reach the agent of node 0 yet, trying again: {where}", node=1)
    gang.said("waiting for node rank 1")
    hosts.write_text(f"{switch.address(0)} coordinator\n")
    assert gang.outcome() == ([0, 0], {0: "trained"})


@needs_network
@needs_mounts
def test_it_dials_on_when_somebody_else_has_the_old_address(watched: Gang, switch: Switch) -> None:
    gang = watched
    hosts = gang.directory / "hosts"
    hosts.write_text(f"{switch.address(2)} coordinator\n")
    gang.document["masterAddr"] = "coordinator"
    gang.prefix[1] = [*gang.prefix[1], *mount(hosts, "/etc/hosts")]
    server = ["python3", "-c", GREETS, str(gang.document["gangPort"])]
    with subprocess.Popen([*switch.add(2), *server]) as other:
        try:
            gang.script("")
            gang.start_all()
            gang.said("no welcome from the agent of node 0: it sent no JSON", node=1)
            hosts.write_text(f"{switch.address(0)} coordinator\n")
            assert gang.outcome() == ([0, 0], {0: "trained"})
        finally:
            other.kill()


@needs_network
def test_it_does_not_connect_to_itself_when_nobody_listens_yet(switch: Switch) -> None:
    # The kernel has one port to give to who connects, and it is the one that is dialed.
    code = textwrap.dedent("""
        from pathlib import Path
        from ddpk8s_agent.gang.dialer import connect
        Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40000")
        print(connect("127.0.0.1", 40000, 1.0))
    """)
    command = [*switch.add(2), sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "127.0.0.1:40000: connection refused\n"


GREETS = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
while True:
    with listener.accept()[0] as connection: connection.sendall(b"220 mail ESMTP\\r\\n")
"""
