"""Who may join, and who has to wait."""

from typing import Any

import pytest

from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.joining import Identity
from ddpk8s_agent.gang.ledger import Ledger
from ddpk8s_agent.gang.messages import decode, encode
from ddpk8s_agent.gang.roster import CUT, KILLED, SILENT, Admission, Roster
from ddpk8s_agent.gang.timing import Timing

TIMING = Timing()


def roster() -> Roster:
    return Roster(Identity("token", 0, 3, 2, "hash", "0.a"), TIMING)


def hello(node: int = 1, **changes: Any) -> dict[str, Any]:
    message = {"v": 1, "type": "HELLO", "attempt": -1, "node": node, "inc": f"{node}.a", "token": "token"}
    rest = {"nnodes": 3, "nproc": 2, "spec": "hash", "ledger": Ledger("token").to_document(), "fresh": True}
    return {**message, **rest, **changes}


def answer(admission: Admission) -> dict[str, Any]:
    """Return the answer, by way of the line that it will be."""
    assert admission.peer is None
    assert any(isinstance(action, e.Hangup) for action in admission.actions)
    sent = next(action for action in admission.actions if isinstance(action, e.Send))
    return decode(encode(sent.message))


def test_a_member_with_everything_alike_is_in() -> None:
    gang = roster()
    admission = gang.admit(hello(), 7, 1.0)
    assert admission.peer is not None
    assert gang.of(7) is admission.peer
    assert gang.missing == [0, 2]


def test_an_agent_of_another_run_is_refused_and_told_of_once_a_minute() -> None:
    gang = roster()
    said = []
    for now in (0.0, 30.0, 61.0):
        admission = gang.admit(hello(token="guess"), 7, now)
        assert answer(admission)["fatal"] is False
        said.append(any(isinstance(action, e.Say) for action in admission.actions))
    assert said == [True, False, True]
    assert gang.missing == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nnodes": 4}, ("nnodes", "4 on node 1", "3 on node 0")),
        ({"nproc": 8}, ("nprocPerNode", "8 on node 1", "2 on node 0")),
        ({"spec": "other"}, ("other on node 1", "hash on node 0")),
        ({"node": 3}, ("3", "does not exist", "3 nodes")),
    ],
)
def test_a_plan_that_differs_is_refused_for_good_and_both_values_named(
    changes: dict[str, Any], words: tuple[str, ...]
) -> None:
    message = answer(roster().admit(hello(**changes), 7, 0.0))
    assert message["fatal"] is True
    assert all(word in message["why"] for word in words)


def test_a_ledger_that_cannot_be_read_is_refused() -> None:
    assert answer(roster().admit(hello(ledger={"token": 1}), 7, 0.0))["type"] == "REJECT"


def test_a_second_agent_of_a_node_rank_waits_while_the_first_lives() -> None:
    gang = roster()
    first = gang.admit(hello(), 7, 0.0).peer
    message = answer(gang.admit(hello(inc="1.b"), 8, 1.0))
    assert (message["type"], message["duplicate"]) == ("WAITING", True)
    assert gang.of(7) is first
    assert gang.of(8) is None


def test_a_member_that_comes_again_replaces_its_old_connection() -> None:
    gang = roster()
    old = gang.admit(hello(), 7, 0.0).peer
    admission = gang.admit(hello(), 8, 1.0)
    assert (admission.old, admission.returned) == (old, True)
    assert admission.actions == [e.Hangup(7)]
    assert gang.of(7) is None


def test_a_stranger_cannot_take_over_by_the_name_of_a_member() -> None:
    gang = roster()
    gang.admit(hello(), 7, 0.0)
    answer(gang.admit(hello(token="guess"), 8, 1.0))
    assert gang.of(7) is not None


@pytest.mark.parametrize(("how", "fenced"), [(SILENT, True), (CUT, True), (KILLED, False)])
def test_a_silent_member_is_waited_for_even_if_another_took_its_place(how: str, fenced: bool) -> None:
    gang = roster()
    peer = gang.admit(hello(), 7, 0.0).peer
    assert peer is not None
    gang.remove(peer, how, 100.0)
    gang.admit(hello(inc="1.b"), 8, 101.0)
    assert gang.fenced(100.0 + TIMING.fence - 1) is fenced
    assert not gang.fenced(100.0 + TIMING.fence)


def test_a_silent_member_that_comes_back_itself_is_waited_for_no_longer() -> None:
    gang = roster()
    peer = gang.admit(hello(), 7, 0.0).peer
    assert peer is not None
    gang.remove(peer, SILENT, 100.0)
    assert gang.admit(hello(state="drain"), 8, 101.0).peer is not None
    assert not gang.fenced(101.0)
    assert gang.peers[1].busy, "until it says that its processes are gone"


def test_a_message_under_another_name_on_a_members_connection_is_no_sign_of_life() -> None:
    gang = roster()
    gang.admit(hello(), 7, 0.0)
    assert gang.hear({"type": "HB", "inc": "1.x"}, 7, 1.0) is None
    assert gang.peers[1].heard == 0.0
