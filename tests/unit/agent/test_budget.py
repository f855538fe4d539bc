"""Restarts, pauses and the breaker."""

from ddpk8s_agent.budget import Budget


def test_it_restarts_as_often_as_allowed_and_not_once_more() -> None:
    budget = Budget(2, sees_progress=True)
    decisions = [budget.charge(step) for step in (10, 20, 30)]
    assert [decision.restart for decision in decisions] == [True, True, False]
    assert [decision.pause_seconds for decision in decisions] == [0, 0, 0]


def test_pauses_grow_while_nothing_moves_and_are_gone_after_progress() -> None:
    budget = Budget(100, sees_progress=False)
    assert [budget.charge(None).pause_seconds for _ in range(8)] == [0, 5, 10, 20, 40, 60, 60, 60]
    assert budget.charge(1).pause_seconds == 0


def test_three_attempts_in_a_row_without_a_newer_step_end_it() -> None:
    budget = Budget(100, sees_progress=True)
    steps = (10, 10, 9, 11, 11, None, 11)
    decisions = [budget.charge(step) for step in steps]
    assert [decision.restart for decision in decisions] == [True] * 6 + [False]
    assert decisions[-1].reason == "NoProgress"


def test_silence_ends_nothing_when_progress_cannot_be_seen() -> None:
    budget = Budget(5, sees_progress=False)
    assert all(budget.charge(None).restart for _ in range(5))
