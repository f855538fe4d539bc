"""What an attempt costs: losses, stops, ends."""

import pytest
from tests.unit.agent.gang.documents import (
    DECIDER,
    VICTIMS,
    decide,
    ended,
    ending,
    lost,
    node,
    raised,
)

from ddpk8s_agent import exitcodes
from ddpk8s_agent.evidence import RankEnd
from ddpk8s_agent.gang.ending import Ending
from ddpk8s_agent.gang.ledger import CHARGED, FREE, STOPPED, TRAINED, Ledger, Record
from ddpk8s_agent.gang.roster import CUT, KILLED, LEFT, SILENT, STUCK


@pytest.mark.parametrize("how", [SILENT, KILLED, STUCK])
def test_a_lost_node_is_free_and_named(how: str) -> None:
    outcome = lost(how)
    assert (outcome.record.kind, outcome.exit, outcome.word["node"]) == (FREE, None, 1)
    assert outcome.record.killed == ((1,) if how == KILLED else ())


def test_a_node_that_only_lost_its_connection_is_free_although_all_evidence_is_here() -> None:
    found = Ending(0)
    found.miss(1, KILLED)
    found.add(0, False, node(0, *VICTIMS))
    found.add(1, False, node(1, ended(2), ended(3), drained="lost"))
    outcome = decide(found)
    assert found.lost == {1: CUT}
    assert (outcome.record.kind, outcome.record.killed) == (FREE, ()), "it was not killed: it came back"


def test_what_exits_with_0_while_the_agent_ends_it_has_not_left_early() -> None:
    found = Ending(0)
    found.miss(1, SILENT)
    found.add(0, False, node(0, ended(0), drained="lost"))
    found.add(1, False, node(1, ended(2), drained="lost"))
    assert decide(found).record.kind == FREE


def test_an_own_failure_is_charged_although_a_node_was_lost_too() -> None:
    found = ending(node(0, RankEnd(0, 1, 0, log=raised("ValueError: boom"))))
    found.miss(1, SILENT)
    assert decide(found).record.kind == CHARGED


def test_the_second_kill_without_progress_is_charged_and_not_after_progress() -> None:
    before = Ledger("t", attempt=1, records={0: Record(FREE, step=5, killed=(1,))})
    found = Ending(1)
    found.add(0, False, node(0, *VICTIMS, step=5))
    found.miss(1, KILLED)
    outcome = DECIDER(before, found)
    assert (outcome.record.kind, outcome.word["reason"], outcome.word["node"]) == (CHARGED, "NodeKilled", 1)
    assert "memory" in outcome.word["hint"]
    assert lost(KILLED, before, step=6).record.kind == FREE


def test_three_losses_without_progress_end_the_job_and_the_last_is_charged() -> None:
    before = Ledger("t", attempt=3, records={n: Record(FREE, step=5, unseen=(1,)) for n in range(3)})
    found = Ending(3)
    found.add(0, False, node(0, *VICTIMS, step=5))
    found.miss(1, SILENT)
    outcome = DECIDER(before, found)
    assert (outcome.record.kind, outcome.exit, outcome.word["reason"]) == (
        CHARGED,
        exitcodes.FAILED,
        "NoProgress",
    )


# --- stops


def test_whatever_follows_a_stop_is_free() -> None:
    found = Ending(0)
    found.stopped(1)
    found.add(0, False, node(0, RankEnd(0, 1, 0, log=raised("ValueError: in the way out"))))
    found.add(1, False, node(1, RankEnd(2, 143, 2), RankEnd(3, 143, 3), stop_requested=True))
    outcome = decide(found)
    assert (outcome.record.kind, outcome.exit) == (STOPPED, None), (
        "the others wait for the one that was asked"
    )


def test_a_failure_that_came_before_the_stop_is_charged() -> None:
    found = Ending(0)
    found.suspected(1)
    found.stopped(0)
    found.add(0, False, node(0, *VICTIMS, stop_requested=True))
    found.add(1, False, node(1, RankEnd(2, 1, 2, log=raised("ValueError: boom")), ended(3)))
    assert decide(found).record.kind == CHARGED


def test_a_victim_that_spoke_before_the_stop_was_heard_of_makes_no_failure() -> None:
    found = Ending(0)
    found.suspected(0)
    found.stopped(1)
    found.add(0, False, node(0, *VICTIMS))
    found.add(1, False, node(1, RankEnd(2, 143, 2), RankEnd(3, 143, 3), stop_requested=True))
    assert decide(found).record.kind == STOPPED


def test_a_node_that_says_that_it_leaves_was_stopped() -> None:
    assert lost(LEFT).record.kind == STOPPED


def test_workers_that_stop_though_nobody_asked_an_agent_end_the_job() -> None:
    documents = (
        node(number, RankEnd(2 * number, 143, 1), RankEnd(2 * number + 1, 143, 1)) for number in (0, 1)
    )
    outcome = decide(ending(*documents))
    assert (outcome.record.kind, outcome.exit, outcome.final) == (STOPPED, exitcodes.STOPPED, False)


# --- the end


def test_the_job_is_trained_only_when_every_node_has_finished() -> None:
    finished = node(0, launcher="finished", finished={"step": 9, "checkpoint": "/c"})
    both = decide(ending(finished, node(1, launcher="finished")))
    assert (both.record.kind, both.exit, both.word["checkpoint"]) == (TRAINED, exitcodes.TRAINED, "/c")
    found = ending(finished)
    found.miss(1, KILLED)
    assert (decide(found).record.kind, decide(found).exit) == (FREE, None)


def test_a_rank_that_does_not_leave_after_the_training_is_a_warning_if_the_result_is_there() -> None:
    late = node(1, RankEnd(3, -9, 3, closed=True), drained="finish")
    found = ending(node(0, launcher="finished", finished={"step": 9}), late, unfinished=True)
    assert decide(found).record.kind == TRAINED
    assert "rank 3" in decide(found).word["message"]
    without = ending(node(0, launcher="finished"), late, unfinished=True)
    assert decide(without).record.kind == CHARGED


def test_evidence_that_cannot_be_read_does_not_stop_the_verdict() -> None:
    outcome = decide(ending(node(0, *VICTIMS), {"launcher": "failed", "ranks": 7}))
    assert outcome.word["node"] == 1
    assert outcome.exit is None


def test_a_taken_port_is_free_five_times() -> None:
    error = node(0, launcher="error", launcher_message="EADDRINUSE")
    found = ending(error, node(1, ended(2), ended(3), drained="failure"))
    assert (decide(found).record.kind, decide(found).record.port) == (FREE, True)
    before = Ledger("t", attempt=5, records={n: Record(FREE, port=True) for n in range(5)})
    assert decide(found, before).record.kind == CHARGED
