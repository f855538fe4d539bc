"""Restarts, pauses and the breaker."""

from ddpk8s_agent.budget import Decision, decide
from ddpk8s_agent.gang.ledger import CHARGED, FREE, STOPPED, Ledger, Record


def decisions(max_restarts: int, records: list[Record], *, sees_progress: bool = True) -> list[Decision]:
    """Return what follows each attempt of a row."""
    ledger, found = Ledger("t"), []
    for attempt, record in enumerate(records):
        ledger = ledger.started(attempt).decided(attempt, record)
        found.append(decide(ledger, attempt, max_restarts, sees_progress=sees_progress))
    return found


def charged(*steps: int | None) -> list[Record]:
    return [Record(CHARGED, step=step) for step in steps]


def test_it_restarts_as_often_as_allowed_and_not_once_more() -> None:
    found = decisions(2, charged(10, 20, 30))
    assert [decision.restart for decision in found] == [True, True, False]
    assert [decision.pause_seconds for decision in found] == [0, 0, 0]


def test_pauses_grow_while_nothing_moves_and_are_gone_after_progress() -> None:
    found = decisions(100, charged(*[None] * 8, 1), sees_progress=False)
    assert [decision.pause_seconds for decision in found] == [0, 5, 10, 20, 40, 60, 60, 60, 0]


def test_three_attempts_in_a_row_without_a_newer_step_end_it() -> None:
    found = decisions(100, charged(10, 10, 9, 11, 11, None, 11))
    assert [decision.restart for decision in found] == [True] * 6 + [False]
    assert found[-1].reason == "NoProgress"


def test_silence_ends_nothing_when_progress_cannot_be_seen() -> None:
    assert all(decision.restart for decision in decisions(5, charged(*[None] * 5), sees_progress=False))


def test_free_losses_cost_nothing_but_not_for_ever_without_progress() -> None:
    losses = [Record(FREE, step=step) for step in range(1, 9)]
    assert all(decision.restart for decision in decisions(0, losses))
    barren = decisions(100, [Record(FREE, step=5), *[Record(FREE, step=5)] * 3])
    assert [decision.restart for decision in barren] == [True, True, True, False]
    assert not any(decision.pause_seconds for decision in barren), "a lost node is not the job's fault"


def test_stops_and_taken_ports_are_no_attempts_without_progress() -> None:
    row = [*charged(5, 5, 5), Record(STOPPED, step=5), Record(FREE, port=True)]
    assert all(decision.restart for decision in decisions(100, row))
