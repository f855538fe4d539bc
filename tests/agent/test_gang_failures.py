"""A rank, or torchrun, fails in a gang of two nodes: who is named, what is charged, what is left.

Each fault hits ranks that would train for ever: that the agents end at all shows that the others were ended.
"""

import os
import signal
from pathlib import Path

import pytest

from tests.agent.gang import Gang

CHARGED_ONCE = ([0, 0], {0: "charged", 1: "trained"})


@pytest.mark.parametrize("rank", [0, 3])
def test_the_killed_rank_is_named_and_not_its_victims_when_a_worker_is_killed(gang: Gang, rank: int) -> None:
    gang.trains().train_all()
    os.kill(gang.pid(rank), signal.SIGKILL)
    assert gang.outcome() == CHARGED_ONCE
    assert gang.why().startswith(
        f"rank {rank} on node {rank // 2} (pid {gang.pid(rank)}) was killed by SIGKILL"
    )
    assert "failed only because of that" in gang.why(), "others raised gloo's errors"
    assert "starting again: restart 1 of 3" in gang.err()


def test_the_raiser_is_named_when_a_rank_raises(gang: Gang) -> None:
    gang.trains("if RANK == 2: raise ValueError('boom')").start_all()
    assert gang.outcome() == CHARGED_ONCE
    assert "rank 2 on node 1" in gang.why()
    assert "failed with exit code 1: ValueError: boom" in gang.why()
    assert "|     train()" in gang.err(), "the traceback is told by node 0, though the rank is on node 1"


def test_the_raiser_is_named_when_its_victims_are_seen_long_before_it_leaves(gang: Gang) -> None:
    gang.trains("""
        if RANK == 3:
            try: raise ValueError("boom")
            except ValueError: traceback.print_exc()
            touch(f"left-3-{ATTEMPT}")  # its connections are closed; its threads keep it
            time.sleep(600)
    """).start_all()
    assert gang.outcome() == CHARGED_ONCE
    assert gang.why().startswith("rank 3 on node 1")
    assert "ValueError: boom" in gang.why()


def test_it_is_said_on_how_many_when_all_ranks_raise(gang: Gang) -> None:
    gang.trains("""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a rank that is on its way out is not stopped
        touch(f"raises-{RANK}")
        for rank in range(4): wait_for(f"raises-{rank}")
        raise ValueError(f"boom of rank {RANK}")
    """).start_all()
    assert gang.outcome() == CHARGED_ONCE
    assert "(the same on 4 of 4 ranks)" in gang.why()


def test_the_rank_that_left_is_named_when_it_left_with_0_while_others_train(gang: Gang) -> None:
    gang.document["maxRestarts"] = 0
    gang.trains("if RANK == 3: os._exit(0)").start_all()
    assert gang.outcome() == ([1, 1], {0: "charged"})
    assert gang.why().startswith("rank 3 on node 1 left early with exit code 0")
    word = gang.ended[0].word
    assert (word["reason"], word["rank"], word["node"], word["exitCode"]) == ("LeftEarly", 3, 1, 0)


def test_a_rank_that_leaves_with_0_when_torchrun_ends_it_is_not_taken_for_one_that_left_early(
    gang: Gang,
) -> None:
    gang.trains("""
        if RANK == 1: signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        touch(f"handles-{RANK}")
        if RANK in (1, 3): time.sleep(600)
        wait_for("handles-1")
        if RANK == 0: raise RuntimeError("[gloo/transport/tcp/pair.cc:561] Connection closed by peer [127.0.0.1]:1")
        time.sleep(600)
    """).start_all()
    assert gang.outcome() == CHARGED_ONCE
    assert "left early" not in gang.why()
    assert "need not be the cause" in gang.why()


def test_the_crashed_rank_is_named_when_it_has_a_segmentation_fault(gang: Gang) -> None:
    gang.trains("if RANK == 1: os.kill(os.getpid(), signal.SIGSEGV)").start_all()
    assert gang.outcome() == CHARGED_ONCE
    assert gang.why().startswith(f"rank 1 on node 0 (pid {gang.pid(1)}) was killed by SIGSEGV")
    assert "Fatal Python error: Segmentation fault" in gang.err()


@pytest.mark.parametrize("aborting", [(0, 1, 3), (0,)])
def test_the_silent_rank_is_named_when_the_others_waited_for_it_in_vain(
    gang: Gang, aborting: tuple[int, ...]
) -> None:
    fault = """
        if RANK == 2: time.sleep(600)
        if RANK in ABORTING: signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(f"[rank{RANK}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", file=sys.stderr)
        print("To avoid data inconsistency, we are taking the entire process down.", file=sys.stderr, flush=True)
        touch(f"waited-{RANK}")
        for rank in (0, 1, 3): wait_for(f"waited-{rank}")
        if RANK in ABORTING: os.abort()
        time.sleep(600)
    """
    gang.trains(fault.replace("ABORTING", str(aborting))).start_all()
    assert gang.outcome() == CHARGED_ONCE
    assert gang.why() == "rank 2 on node 1 fell silent: others waited for it in vain"


@pytest.mark.parametrize("node", [0, 1])
def test_the_node_is_named_and_no_worker_is_left_when_torchrun_is_killed(gang: Gang, node: int) -> None:
    gang.trains().train_all()
    os.kill(gang.launcher(gang.nodes[node]), signal.SIGKILL)
    assert gang.outcome() == CHARGED_ONCE
    assert gang.why() == f"torchrun on node {node} was killed by SIGKILL, its workers were ended"


def test_every_agent_ends_with_1_and_all_attempts_are_told_when_the_budget_is_spent(gang: Gang) -> None:
    gang.document["maxRestarts"] = 1
    gang.trains("if RANK == ATTEMPT + 1: raise ValueError(f'boom {ATTEMPT}')", attempts=9).start_all()
    assert gang.outcome() == ([1, 1], {0: "charged", 1: "charged"})
    story = gang.err()[gang.err().index("giving up") :]
    assert "restarts used up: 1 of 1 (spec.failurePolicy.maxRestarts)" in story
    assert "attempt 0  charged  rank 1 on node 0" in story
    assert "attempt 1  charged  rank 2 on node 1" in story
    for node in (0, 1):
        word = gang.ended[node].word
        assert (word["rank"], word["node"], word["restarts"]) == (2, 1, 1), node
        assert "ValueError: boom 1" in word["message"]


def test_attempts_of_an_earlier_coordinator_are_told_too_when_the_budget_is_spent(gang: Gang) -> None:
    gang.document["maxRestarts"] = 1
    gang.trains(
        "if RANK == 3 and ATTEMPT in (0, 2): raise ValueError(f'boom {ATTEMPT}')", attempts=9
    ).start_all()
    gang.wait(*(f"trains-{rank}-1" for rank in range(4)))
    gang.kill_node(0)
    gang.start_node(0)
    assert gang.outcome() == ([1, 1], {0: "charged", 1: "free", 2: "charged"})
    story = gang.err()[gang.err().index("giving up") :]
    assert "attempt 0  charged  rank 3 on node 1" in story
    assert "attempt 1  free     node 0" in story
    assert "attempt 2  charged  rank 3 on node 1" in story


def test_every_agent_ends_with_78_at_once_when_a_rank_reports_a_mistake(gang: Gang) -> None:
    gang.trains("""
        if RANK == 3:
            error = {"rank": 3, "reason": "DataMistake", "message": "no column label", "hint": "name it", "step": 0}
            Path(os.environ["DDPK8S_STATUS_DIR"], "rank-3.error.json").write_text(json.dumps(error))
            sys.exit(78)
    """).start_all()
    codes, kinds = gang.outcome()
    assert (codes, list(kinds)) == ([78, 78], [0]), "it would fail again"
    for node in (0, 1):
        word = gang.ended[node].word
        assert (word["reason"], word["rank"], word["message"]) == ("DataMistake", 3, "no column label"), node
    assert "hint: name it" in gang.err()


def test_three_attempts_that_come_no_further_are_the_end_when_progress_can_be_seen(gang: Gang) -> None:
    gang.document |= {"maxRestarts": 20, "progressRegex": r"step (?P<step>\d+)"}
    gang.trains("if RANK == 2: raise ValueError('boom')", attempts=9).start_all()
    assert gang.outcome() == ([1, 1], {0: "charged", 1: "charged", 2: "charged"})
    assert "giving up: three attempts in a row came no further" in gang.err()
    assert gang.ended[0].word["reason"] == "NoProgress"


def test_pauses_grow_when_attempts_fail_at_once(gang: Gang) -> None:
    gang.document["maxRestarts"] = 20
    gang.trains("if RANK == 2: raise ValueError('boom')", attempts=9).start_all()
    gang.said("starting again: restart 1 of 20")
    gang.said("starting again in 5 s: restart 2 of 20")
    for agent in gang.nodes.values():
        agent.terminate()
    codes, kinds = gang.outcome()
    assert codes == [143, 143], "a pause is no reason to stay"
    assert kinds == {0: "charged", 1: "charged"}


def test_the_output_of_each_rank_and_attempt_is_kept(gang: Gang) -> None:
    gang.trains("""
        print(f"out of {RANK}", flush=True)
        touch(f"printed-{RANK}")
        for rank in range(4): wait_for(f"printed-{rank}")
        if RANK == 3: raise ValueError("boom")
    """).start_all()
    assert gang.outcome() == CHARGED_ONCE
    state = gang.folder(1) / "state"
    assert (state / "attempt-0" / "rank-2.stdout.log").read_text() == "out of 2\n"
    assert "ValueError: boom" in (state / "attempt-0" / "rank-3.stderr.log").read_text()
    assert (state / "attempt-1" / "rank-3.stderr.log").exists()
    assert "[rank 3] out of 3\n" in gang.ended[1].out


@pytest.mark.gang
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("raise ValueError('bad sample')", "failed with exit code 1: ValueError: bad sample"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL"),
    ],
)
def test_the_root_cause_is_named_and_not_its_victim_when_a_rank_of_torch_fails(
    tmp_path: Path, fault: str, told: str
) -> None:
    gang = Gang(tmp_path, nproc=1, torch=True)
    gang.timing |= {"peer_deadline": 12.0, "teardown": 10.0}
    gang.script(f"""
        if ATTEMPT: sys.exit(0)
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        for step in range(1, 100_000):
            if RANK == 1 and step == 20: {fault}
            dist.all_reduce(torch.ones(1))
    """)
    try:
        gang.start_all()
        assert gang.outcome() == CHARGED_ONCE
    finally:
        gang.clean_up()
    assert gang.why().startswith("rank 1 on node 1")
    assert told in gang.why()
    assert "rank 0 failed only because of that" in gang.why()
