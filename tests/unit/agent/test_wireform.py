"""Evidence on its way to the coordinator."""

import json
from dataclasses import replace

import pytest

from ddpk8s_agent import wireform
from ddpk8s_agent.evidence import Evidence, HungRank, RankEnd
from ddpk8s_agent.gang.ledger import CHARGED, Ledger, Record
from ddpk8s_agent.gang.messages import LONGEST, encode

SMALL = Evidence(
    "failed",
    1,
    (0, 1),
    (
        RankEnd(1, -9, 11, log=("a", "b")),
        RankEnd(0, 1, 10, closed=True, error={"reason": "R", "message": "m"}),
    ),
    drained="hang",
    step=7,
    seconds=1.5,
    finished={"step": 7},
    hung=(HungRank(0, 7, 9.5, stopped=True, waits=None, stack=("f", "g")),),
    lost=((1, "silent"),),
    nproc=2,
)


def huge(text: str, ranks: int = 8) -> Evidence:
    ends = tuple(
        RankEnd(
            rank,
            1,
            rank,
            error={"reason": "R", "message": text * 9000, "hint": text * 9000},
            exception=text * 9000,
            traceback=text * 90000,
            log=(text * 5000,) * 20,
        )
        for rank in range(ranks)
    )
    hung = tuple(HungRank(rank, 1, 1.0, stack=(text * 5000,) * 50) for rank in range(ranks))
    said = {"step": 3, "checkpoint": "/c", "evaluation": {"text": text * 99999}}
    return Evidence(
        "failed", 1, tuple(range(ranks)), ends, launcher_message=text * 99999, hung=hung, finished=said
    )


def test_what_is_small_arrives_whole() -> None:
    assert wireform.from_document(json.loads(json.dumps(wireform.to_document(SMALL)))) == SMALL


@pytest.mark.parametrize("text", ["x", "训", "\N{GRINNING FACE}", '"\n'])
@pytest.mark.parametrize("ranks", [1, 8, 64])
def test_huge_logs_fit_into_a_line_together_with_the_ledger(text: str, ranks: int) -> None:
    document = wireform.to_document(huge(text, ranks))
    records = {attempt: Record(CHARGED, text * 500, step=attempt) for attempt in range(200)}
    ledger = Ledger("t", attempt=199, records=records).to_document()
    assert (
        len(encode({"type": "HELLO", "evidence": document, "ledger": ledger, "more": "x" * 500})) <= LONGEST
    )
    back = wireform.from_document(document)
    assert back.ends[0].rank == 0, "whoever was seen first stays"
    assert back.finished["step"] == 3


def test_a_rank_that_is_left_out_does_not_look_as_if_it_had_left_with_0() -> None:
    back = wireform.from_document(wireform.to_document(huge("x", 500)))
    assert len(back.ends) < 500
    assert set(back.ranks) == {end.rank for end in back.ends}


def test_the_end_of_a_log_and_both_ends_of_a_text_are_kept() -> None:
    text = "first" + "x" * 90_000 + "last"
    end = RankEnd(0, 1, 1, exception=text, log=tuple(str(line) for line in range(20)))
    back = wireform.from_document(wireform.to_document(replace(SMALL, ends=(end,)))).ends[0]
    assert back.exception is not None
    assert (back.exception[:5], back.exception[-4:], back.log[-1]) == ("first", "last", "19")


@pytest.mark.parametrize(
    "document", [{}, {"launcher": "failed"}, {**wireform.to_document(SMALL), "ends": [{"x": 1}]}]
)
def test_what_is_no_evidence_is_refused(document: dict[str, object]) -> None:
    with pytest.raises((TypeError, KeyError, ValueError)):
        wireform.from_document(document)
