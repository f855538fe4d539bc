"""Attribution, from texts as torch, gloo and NCCL write them."""

import signal
from dataclasses import replace
from typing import Any

import pytest

from ddpk8s_agent.classes import Class, classify
from ddpk8s_agent.evidence import Evidence, HungRank, RankEnd
from ddpk8s_agent.lastwords import final_exception
from ddpk8s_agent.verdict import Kind, judge

GLOO_CLOSED = "RuntimeError: [../gloo/transport/tcp/pair.cc:561] Connection closed by peer [127.0.0.1]:1177"
GLOO_TIMEOUT = (
    "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 20000ms for recv operation"
)
WATCHDOG = "[rank2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)"


def traceback(line: str) -> tuple[str, ...]:
    return (
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    step()",
        line,
    )


def failed(*ends: RankEnd, ranks: int = 4, **more: Any) -> Evidence:
    return Evidence(launcher="failed", launcher_code=1, ranks=tuple(range(ranks)), ends=ends, **more)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (RankEnd(0, 78, 1), Class.MISTAKE),
        (RankEnd(0, 1, 1, log=traceback("ValueError: boom")), Class.OWN),
        (RankEnd(0, 1, 1, log=traceback(GLOO_CLOSED)), Class.CUT_OFF),
        (RankEnd(0, 1, 1, log=traceback(GLOO_TIMEOUT)), Class.WAITED),
        (RankEnd(0, 1, 1, exception="RuntimeError: Broken pipe"), Class.CUT_OFF),
        (RankEnd(0, 1, 1, error={"reason": "RuntimeError", "message": GLOO_CLOSED}), Class.CUT_OFF),
        (RankEnd(0, -6, 1, log=(WATCHDOG, "terminate called")), Class.WAITED),
        (RankEnd(0, -6, 1, log=("malloc(): corrupted top size",)), Class.OWN),
        (RankEnd(0, -11, 1, log=("Fatal Python error: Segmentation fault",)), Class.OWN),
        (RankEnd(0, -9, 1, log=(GLOO_CLOSED,)), Class.OWN),
        (RankEnd(0, -15, 1, closed=True, log=("step 5",)), Class.ENDED),
        (RankEnd(0, 143, 1, closed=True), Class.ENDED),
        (RankEnd(0, -15, 1, closed=True, log=(WATCHDOG,)), Class.WAITED),
        (RankEnd(0, -15, 1, closed=True, log=("retrying: Broken pipe",)), Class.ENDED),
        (RankEnd(0, -15, 1, closed=True, log=traceback(GLOO_CLOSED)), Class.CUT_OFF),
        (RankEnd(0, -15, 1, closed=True, log=traceback("ValueError: slow to leave")), Class.OWN),
        (RankEnd(0, -15, 1, closed=True, log=traceback("ValueError: slow to leave")[:-1]), Class.ENDED),
        (RankEnd(0, -15, 1, closed=True, log=("Traceback (most recent call last):",)), Class.ENDED),
    ],
)
def test_each_end_has_its_class(end: RankEnd, expected: Class) -> None:
    assert classify(end) is expected


def test_a_victims_error_wrapped_in_an_own_exception_stays_a_victims() -> None:
    log = (
        *traceback(GLOO_CLOSED),
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        *traceback("TrainingError: step failed"),
    )
    assert classify(RankEnd(0, 1, 1, log=log)) is Class.CUT_OFF


def test_an_earlier_handled_connection_error_does_not_make_an_own_error_a_victims() -> None:
    log = (
        *traceback("ConnectionError: Connection closed by peer"),
        "retrying",
        *traceback("ValueError: boom"),
    )
    assert classify(RankEnd(0, 1, 1, log=log)) is Class.OWN


def test_the_last_traceback_counts_when_torch_puts_the_rank_before_each_line() -> None:
    log = tuple(f"[rank1]: {line}" for line in traceback("ValueError: boom"))
    assert final_exception((*traceback("KeyError: old"), *log, "bye")) == "ValueError: boom"


def test_the_culprit_is_named_when_a_victim_was_seen_first() -> None:
    verdict = judge(
        failed(
            RankEnd(1, 1, 11, log=traceback(GLOO_CLOSED)),
            RankEnd(3, -9, 33),
            RankEnd(2, -15, 22, closed=True),
        )
    )
    assert (verdict.kind, verdict.rank, verdict.exit_code) == (Kind.FAILED, 3, -9)
    assert "rank 1 failed only because of that" in verdict.message
    assert "rank 2" not in verdict.message


def test_nobody_is_certain_when_all_are_victims() -> None:
    verdict = judge(failed(*(RankEnd(rank, 1, rank, log=traceback(GLOO_CLOSED)) for rank in range(4))))
    assert verdict.rank == 0
    assert "need not be the cause" in verdict.message


def test_it_is_said_of_how_many_ranks_when_all_raise_the_same() -> None:
    verdict = judge(
        failed(*(RankEnd(rank, 1, rank, log=traceback(f"ValueError: {rank}")) for rank in range(4)))
    )
    assert "(the same on 4 of 4 ranks)" in verdict.message


def test_a_mistake_wins_over_every_other_end() -> None:
    mistake = RankEnd(2, 78, 2, error={"reason": "DataMistake", "message": "m", "hint": "h"})
    verdict = judge(failed(RankEnd(0, -9, 1), mistake))
    assert (verdict.kind, verdict.reason, verdict.message, verdict.hint) == (
        Kind.MISTAKE,
        "DataMistake",
        "m",
        "h",
    )


def test_the_last_words_are_the_message_when_an_own_script_leaves_with_78() -> None:
    verdict = judge(failed(RankEnd(0, 78, 1, log=("starting", "no such directory: /data"))))
    assert verdict.message == "no such directory: /data"


def test_a_plain_exit_code_is_not_explained_by_a_line_that_has_nothing_to_do_with_it() -> None:
    verdict = judge(failed(RankEnd(0, 7, 1, log=("step 5: Error rate 0.1", "loading words"))))
    assert verdict.message == "rank 0 (pid 1) failed with exit code 7"
    assert verdict.log[-1] == "loading words", "shown below, for what it is worth"


MISSING = "ModuleNotFoundError: No module named 'nltk'"
SYNTAX = ('  File "train.py", line 3', "    def f(:", "SyntaxError: invalid syntax")


@pytest.mark.parametrize("log", [traceback(MISSING), SYNTAX, traceback("FileNotFoundError: [Errno 2] x")])
def test_a_script_that_cannot_start_on_any_rank_is_a_mistake(log: tuple[str, ...]) -> None:
    ends = [RankEnd(rank, 1, rank, log=log) for rank in range(4)]
    verdict = judge(failed(*ends), first=True)
    assert verdict.kind is Kind.MISTAKE
    assert verdict.message == f"{log[-1]}, on all ranks as the script starts"
    for evidence in (failed(*ends[:3]), failed(*ends, step=8), failed(*ends, seconds=3600.0)):
        assert judge(evidence, first=True).kind is Kind.FAILED
    assert judge(failed(*ends)).kind is Kind.FAILED, "it had started before"
    typed = [
        RankEnd(rank, 1, rank, error={"reason": "FileNotFoundError", "message": "x"}) for rank in range(4)
    ]
    assert judge(failed(*typed), first=True).kind is Kind.FAILED, "the trainer tells its mistakes itself"


def test_a_state_is_called_saved_only_when_there_is_a_checkpoint_of_it() -> None:
    def stopped(checkpoint: str | None) -> str:
        facts = {"step": 5, "checkpoint": checkpoint}
        return judge(failed(RankEnd(0, -9, 1), stop_requested=True, stopped=facts)).message

    assert stopped("/c/step-00000005") == "stopped as asked, the state of step 5 is saved"
    assert stopped(None) == "stopped as asked"


def test_a_killed_rank_is_charged_although_another_one_stopped_in_order_after_it() -> None:
    verdict = judge(failed(RankEnd(1, -9, 1), RankEnd(0, 143, 2, closed=True)))
    assert (verdict.kind, verdict.rank) == (Kind.FAILED, 1)


def test_whatever_happened_is_a_stop_when_we_were_asked_to_stop() -> None:
    assert judge(failed(RankEnd(0, 1, 1), stop_requested=True)).kind is Kind.STOPPED


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "DistNetworkError: The server socket has failed to listen. code: -98 name: EADDRINUSE",
            Kind.PORT_TAKEN,
        ),
        ("ImportError: libcudart.so.13: cannot open shared object file", Kind.FAILED),
    ],
)
def test_an_error_of_torchrun_itself(message: str, kind: Kind) -> None:
    verdict = judge(Evidence("error", 1, (0,), launcher_message=message))
    assert verdict.kind is kind


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    verdict = judge(failed(RankEnd(0, -(signal.SIGRTMIN + 3), 1)))
    assert f"signal {signal.SIGRTMIN + 3}" in verdict.message


def test_an_error_that_would_repeat_itself_says_so() -> None:
    error = {"reason": "NonFiniteLoss", "message": "the loss is nan at step 3", "repeats": True}
    assert judge(failed(RankEnd(0, 1, 1, error=error))).repeats
    assert not judge(failed(RankEnd(0, 1, 1, error=error | {"repeats": False}))).repeats


def test_host_memory_is_named_when_the_kernel_killed_something_for_lack_of_it() -> None:
    killed, closed = RankEnd(3, -9, 33), RankEnd(2, -9, 22, closed=True)
    verdict = judge(failed(closed, killed, oom=True))
    assert (verdict.rank, verdict.exit_code) == (3, -9)
    assert "host memory ran out; raise spec.resources.memory" in verdict.message
    assert "host memory" not in judge(failed(RankEnd(3, -11, 33), closed, oom=True)).message
    assert "host memory" not in judge(failed(closed, killed)).message


def test_whoever_the_agent_aborted_for_its_stack_has_not_failed_by_itself() -> None:
    old = (*traceback("ValueError: caught long ago"), "Fatal Python error: Aborted", "", "Current thread 0x1")
    assert classify(RankEnd(0, -6, 1, closed=True, log=old)) is Class.ENDED
    assert classify(RankEnd(0, -6, 1, closed=True, log=(WATCHDOG, *old[-3:]))) is Class.WAITED


@pytest.mark.parametrize(
    "more", [{"unfinished": True}, {"hung": (HungRank(1),)}, {}, {"launcher_code": -9}], ids=str
)
def test_it_is_trained_when_a_rank_fails_on_its_way_out_of_a_finished_training(more: dict[str, Any]) -> None:
    result = {"step": 7, "checkpoint": "c"}
    crashed = replace(failed(RankEnd(1, -11, 1), ranks=2), **more)
    assert judge(crashed).kind is Kind.FAILED
    verdict = judge(replace(crashed, finished=result))
    assert verdict.kind is Kind.TRAINED
    assert verdict.message == "training finished; rank 1 did not leave in order afterwards"


def test_it_is_not_trained_when_a_node_is_lost_and_others_wrote_a_result() -> None:
    evidence = failed(
        RankEnd(0, 1, 1, log=traceback(GLOO_CLOSED)), lost=((1, "killed"),), finished={"step": 7}
    )
    assert judge(evidence).kind is Kind.LOST


def test_a_rank_is_named_that_did_not_leave_when_all_others_had() -> None:
    verdict = judge(failed(RankEnd(3, -6, 33, closed=True), unfinished=True, nproc=2))
    assert (verdict.kind, verdict.rank, verdict.node, verdict.certain) == (Kind.FAILED, 3, 1, False)
    assert verdict.message == "rank 3 did not leave after the others had"
