"""The books of a launch: copies that are merged, whoever holds them, in any order."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpk8s_agent.gang.ledger import (
    CHARGED,
    FREE,
    KINDS,
    STOPPED,
    TRAINED,
    Ledger,
    Record,
    from_document,
    union,
)

records = st.builds(
    Record,
    kind=st.sampled_from(KINDS),
    why=st.sampled_from(("", "a", "ab")),
    step=st.none() | st.integers(0, 3),
    killed=st.sampled_from(((), (0,), (0, 1))),
    unseen=st.sampled_from(((), (1,))),
    port=st.booleans(),
)
ends = st.none() | st.builds(
    lambda code: {"code": code, "word": {"reason": "x"}}, st.sampled_from((0, 1, 78))
)
ledgers = st.builds(
    Ledger,
    token=st.just("t"),
    base=st.integers(-1, 1),
    attempt=st.integers(-1, 5),
    records=st.dictionaries(st.integers(0, 4), records, max_size=4),
    end=ends,
)


@given(ledgers, ledgers)
def test_it_does_not_matter_who_merges_with_whom(one: Ledger, other: Ledger) -> None:
    assert one.merge(other) == other.merge(one)


@given(ledgers, ledgers, ledgers)
def test_it_does_not_matter_in_which_order_copies_come(one: Ledger, two: Ledger, three: Ledger) -> None:
    assert one.merge(two).merge(three) == one.merge(two.merge(three))


@given(ledgers, ledgers)
def test_what_is_merged_again_changes_nothing(one: Ledger, other: Ledger) -> None:
    merged = one.merge(other)
    assert merged.merge(other) == merged.merge(one) == merged.merge(merged) == merged


@given(ledgers, ledgers)
def test_nothing_is_forgotten_and_nothing_charged_twice(one: Ledger, other: Ledger) -> None:
    merged = one.merge(other)
    charged = {n for each in (one, other) for n, record in each.records.items() if record.kind == CHARGED}
    assert merged.charged == len(charged)
    assert merged.attempt == max(one.attempt, other.attempt)
    assert set(merged.records) == set(one.records) | set(other.records)


@given(ledgers)
def test_a_copy_in_json_is_the_same(ledger: Ledger) -> None:
    assert from_document(json.loads(json.dumps(ledger.to_document()))) == ledger


def test_a_copy_without_its_texts_does_not_win_over_the_whole_one() -> None:
    full = Ledger("t", records={0: Record(CHARGED, "rank 3 failed", 5)})
    short = Ledger("t", records={0: Record(CHARGED, "", 5)})
    assert full.merge(short) == short.merge(full) == full


def test_an_attempt_that_has_a_record_keeps_it() -> None:
    ledger = Ledger("t").started(0).decided(0, Record(FREE, "lost"))
    assert ledger.decided(0, Record(CHARGED)) is ledger
    assert ledger.undecided is None


def test_attempts_of_launches_before_this_one_are_decided() -> None:
    assert Ledger("t", base=4, attempt=4).undecided is None
    assert Ledger("t", base=4, attempt=4).started(5).undecided == 5


def test_the_ledger_of_another_launch_is_left_out() -> None:
    mine = Ledger("t").started(0)
    assert union(mine, [Ledger("other", attempt=7), Ledger("t", attempt=2)]).attempt == 2


def test_it_stays_small_however_many_attempts_there_were() -> None:
    rows = {n: Record(STOPPED if n % 5 else CHARGED, "训" * 900, step=n) for n in range(3000)}
    ledger = Ledger("t", attempt=2999, records=rows, end={"code": 1, "word": {}})
    document = ledger.to_document()
    assert len(json.dumps(document, ensure_ascii=False).encode()) <= 16 * 1024
    back = from_document(document)
    assert (back.attempt, back.end) == (2999, {"code": 1, "word": {}})
    assert back.records[2999].kind == STOPPED
    assert back.best_step() == 2999


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"token": "t", "base": 0, "attempt": "x", "records": {}},
        {"token": "t", "base": 0, "attempt": 0, "records": {"0": {"kind": "gift"}}},
        {"token": "t", "base": 0, "attempt": 0, "records": [1]},
        {"token": "t", "base": 0, "attempt": 0, "records": {}, "end": {"word": {}}},
    ],
)
def test_what_is_no_ledger_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_document(document)


def test_progress_forgives_those_that_were_killed_before_it() -> None:
    first = Ledger("t", records={0: Record(FREE, step=5, killed=(1,)), 1: Record(FREE, step=5, killed=(2,))})
    assert first.killed_since_progress() == {1, 2}
    assert (
        replace(first, records={**first.records, 2: Record(TRAINED, step=6)}).killed_since_progress() == set()
    )
