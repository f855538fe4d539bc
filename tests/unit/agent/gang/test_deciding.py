"""From the evidence of all nodes to one cause, where whoever speaks first is a victim."""

import pytest
from tests.unit.agent.gang.documents import (
    TIMED_OUT,
    VICTIMS,
    decide,
    ended,
    ending,
    node,
    raised,
    victim,
)

from ddpk8s_agent.evidence import HungRank, RankEnd
from ddpk8s_agent.gang.deciding import Outcome
from ddpk8s_agent.gang.ledger import CHARGED
from ddpk8s_agent.gang.roster import STUCK


@pytest.mark.parametrize(
    ("culprit", "reason", "rank", "kind"),
    [
        (
            (RankEnd(3, 78, 3, error={"reason": "DataMistake", "message": "m"}), ended(2)),
            "DataMistake",
            3,
            CHARGED,
        ),
        ((RankEnd(3, 1, 3, log=raised("ValueError: boom")), ended(2)), "WorkerFailed", 3, CHARGED),
        ((RankEnd(3, -9, 3), ended(2)), "WorkerKilled", 3, CHARGED),
        ((RankEnd(3, -11, 3, log=("Segmentation fault",)), ended(2)), "WorkerKilled", 3, CHARGED),
        ((victim(2),), "LeftEarly", 3, CHARGED),  # rank 3 is not in the table: it left with 0
    ],
)
def test_the_culprit_on_the_other_node_is_named_when_a_victim_speaks_first(
    culprit: tuple[RankEnd, ...], reason: str, rank: int, kind: str
) -> None:
    outcome = decide(ending(node(0, *VICTIMS), node(1, *culprit)))
    assert (outcome.word["reason"], outcome.word["rank"], outcome.word["node"]) == (reason, rank, 1)
    assert outcome.record.kind == kind
    assert outcome.word["certain"]


def test_who_fell_silent_is_named_when_all_others_waited_in_vain() -> None:
    waiting = (victim(0, TIMED_OUT), victim(1, TIMED_OUT))
    outcome = decide(ending(node(0, *waiting), node(1, victim(2, TIMED_OUT), RankEnd(3, -9, 3, closed=True))))
    assert (outcome.word["reason"], outcome.word["rank"], outcome.word["certain"]) == ("Hang", 3, False)


def test_only_victims_are_charged_and_nobody_is_certain() -> None:
    outcome = decide(ending(node(0, *VICTIMS), node(1, victim(2), ended(3))))
    assert (outcome.record.kind, outcome.word["certain"]) == (CHARGED, False)
    assert outcome.exit is None


def test_a_launcher_that_died_is_named_with_its_node() -> None:
    outcome = decide(ending(node(0, *VICTIMS), node(1, launcher="died")))
    assert (outcome.word["reason"], outcome.word["node"], outcome.record.kind) == ("LauncherDied", 1, CHARGED)


# --- hangs


def hung(*ranks: HungRank) -> Outcome:
    found = ending(
        node(0, ended(0), ended(1), drained="hang", hung=ranks[:2]),
        node(1, ended(2), ended(3), drained="hang", hung=ranks[2:]),
    )
    found.hung(1200.0)
    return decide(found)


def waiting(rank: int, step: int = 7) -> HungRank:
    return HungRank(rank, step, 1200.0, waits=True, stack=("all_reduce",))


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (HungRank(2, 7, 1200.0, stopped=True, waits=True), "stopped by a signal"),
        (HungRank(2, 7, 1200.0, waits=False, stack=("read_block",)), "busy elsewhere"),
        (waiting(2, 6), "at step 6"),
    ],
)
def test_the_rank_that_others_wait_for_is_named_in_a_hang(cause: HungRank, words: str) -> None:
    outcome = hung(waiting(0), waiting(1), cause, waiting(3))
    assert (outcome.word["reason"], outcome.word["rank"], outcome.record.kind) == ("Hang", 2, CHARGED)
    assert words in outcome.word["message"]
    assert outcome.word["certain"]


def test_nobody_is_named_when_all_stand_still_alike() -> None:
    outcome = hung(*(waiting(rank) for rank in range(4)))
    assert (outcome.word["rank"], outcome.word["certain"], outcome.record.kind) == (None, False, CHARGED)
    assert "every rank" in outcome.word["message"]


def test_a_hang_stays_a_hang_when_its_processes_do_not_end() -> None:
    found = ending(node(0, ended(0), ended(1), drained="failure"))
    found.hung(1200.0)
    found.miss(1, STUCK)
    outcome = decide(found)
    assert (outcome.word["reason"], outcome.record.kind) == ("Hang", CHARGED)
