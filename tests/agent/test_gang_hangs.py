"""Nothing moves any more, or a rank does not leave: who is named, and that silence alone ends nothing."""

import os
import signal
import textwrap
from pathlib import Path

import pytest

from tests.agent.gang import Gang

CHARGED_ONCE = ([0, 0], {0: "charged", 1: "trained"})

# Stands in the bundled trainer's place: writes beat files as that does.
TRAINER = """
    import json, os, signal, sys, threading, time
    from pathlib import Path
    RANK, ATTEMPT = int(os.environ["RANK"]), int(os.environ["DDPK8S_ATTEMPT"])
    STATUS = Path(os.environ["DDPK8S_STATUS_DIR"])
    descriptor = os.open(STATUS / f"rank-{RANK}.beat", os.O_WRONLY | os.O_CREAT)
    def beat(step, phase="training"):
        line = json.dumps({"n": step, "step": step, "phase": phase})
        os.pwrite(descriptor, f"{line:<63}\\n".encode(), 0)
    def finish():
        content = {"step": 5, "checkpoint": "step-00000005", "model": None, "report": None, "evaluation": {}}
        if RANK == 0: (STATUS / "finished.json").write_text(json.dumps(content))
    def all_reduce(): time.sleep(600)
    def stand():
        time.sleep(600)
    def compute():
        while True: pass
    if ATTEMPT: sys.exit(0)
    for step in range(1, 6):
        beat(step)
        time.sleep(0.02)
"""


@pytest.fixture
def hangs(gang: Gang) -> Gang:
    """Return a gang that sees its module's beats, and does not wait long for them."""
    gang.document |= {"command": {"module": "stand_in_trainer", "args": []}, "hangTimeoutSeconds": 2.5}
    for node in range(gang.nnodes):
        gang.environment[node] = {"PYTHONPATH": str(gang.directory)}
    return gang


def trainer(gang: Gang, end: str) -> Gang:
    """Write the module; `end` is what its ranks do after five steps."""
    text = textwrap.dedent(TRAINER) + textwrap.dedent(end)
    (gang.directory / "stand_in_trainer.py").write_text(text)
    return gang


def test_the_busy_rank_is_named_with_its_stack_when_the_others_wait_for_it(hangs: Gang) -> None:
    trainer(hangs, "compute() if RANK == 2 else all_reduce()").start_all()
    assert hangs.outcome() == CHARGED_ONCE
    assert "rank 2 on node 1 is busy elsewhere while the others wait for it" in hangs.why()
    assert "in compute)" in hangs.why()
    assert "no rank made progress for" in hangs.err()
    assert "last lines of rank 2:" in hangs.err()
    assert hangs.ledger()["records"]["0"]["step"] == 5


def test_a_rank_that_waits_for_a_thread_of_its_own_is_not_taken_for_one_that_waits_for_others(
    hangs: Gang,
) -> None:
    trainer(hangs, "threading.Event().wait() if RANK == 1 else all_reduce()").start_all()
    assert hangs.outcome() == CHARGED_ONCE
    assert "rank 1 on node 0 is busy elsewhere" in hangs.why()


@pytest.mark.parametrize("stopped", [(3,), (1, 2)])
def test_stopped_ranks_are_named_when_a_signal_stopped_them(hangs: Gang, stopped: tuple[int, ...]) -> None:
    trainer(hangs, f"os.kill(os.getpid(), signal.SIGSTOP) if RANK in {stopped} else all_reduce()").start_all()
    assert hangs.outcome() == CHARGED_ONCE
    names = ", ".join(f"rank {rank} on node {rank // 2}" for rank in stopped)
    assert f": {names} {'is' if len(stopped) == 1 else 'are'} stopped by a signal" in hangs.why()


def test_the_rank_behind_the_others_is_named_when_stacks_do_not_tell(hangs: Gang) -> None:
    trainer(hangs, "if RANK != 3: beat(6)\nstand()").start_all()
    assert hangs.outcome() == CHARGED_ONCE
    assert "rank 3 on node 1 is behind the others, at step 5" in hangs.why()


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGSTOP)", "stand()"])
def test_nobody_is_named_when_all_ranks_stand_still(hangs: Gang, end: str) -> None:
    hangs.document["maxRestarts"] = 0
    trainer(hangs, end).start_all()
    assert hangs.outcome() == ([1, 1], {0: "charged"})
    assert "on every rank alike" in hangs.why()
    assert (hangs.ended[0].word["reason"], hangs.ended[0].word["rank"]) == ("Hang", None)
    assert hangs.ledger()["end"]["word"]["certain"] is False


def test_a_rank_that_never_gives_a_sign_is_found_too_when_it_should(hangs: Gang) -> None:
    (hangs.directory / "stand_in_trainer.py").write_text(
        "import os, sys, time\n"
        "def importing(): time.sleep(600)\n"
        "importing() if os.environ['DDPK8S_ATTEMPT'] == '0' else sys.exit(0)"
    )
    hangs.start_all()
    assert hangs.outcome() == CHARGED_ONCE
    assert "on every rank alike" in hangs.why()


def test_an_old_error_in_the_log_blames_nobody_when_the_gang_hangs(hangs: Gang) -> None:
    end = """
        import traceback
        try: 1 / 0
        except ZeroDivisionError: traceback.print_exc()
        compute() if RANK == 2 else all_reduce()
    """
    trainer(hangs, end).start_all()
    assert hangs.outcome() == CHARGED_ONCE
    assert "rank 2 on node 1 is busy elsewhere" in hangs.why()


def test_a_script_is_watched_by_what_its_rank_0_prints_when_there_is_a_progress_regex(gang: Gang) -> None:
    gang.document |= {"hangTimeoutSeconds": 2.5, "progressRegex": r"step (?P<step>\d+)"}
    gang.trains("""
        if RANK == 0: print("step 10", flush=True)
        def wait(): time.sleep(600)
        if RANK == 1: os.kill(os.getpid(), signal.SIGSTOP)
        wait()
    """).start_all()
    assert gang.outcome() == CHARGED_ONCE
    assert "rank 1 on node 0 is stopped by a signal" in gang.why()
    assert gang.ledger()["records"]["0"]["step"] == 10


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"hangTimeoutSeconds": 0.5},
        {"hangTimeoutSeconds": 0.5, "progressRegex": "never printed"},
    ],
)
def test_a_silent_script_goes_on_when_no_sign_of_it_was_ever_seen(
    gang: Gang, settings: dict[str, object]
) -> None:
    gang.document |= settings
    gang.script("time.sleep(2.5)")
    gang.start_all()
    assert gang.outcome() == ([0, 0], {0: "trained"})


def test_it_is_a_success_when_a_rank_leaves_later_than_the_others(hangs: Gang) -> None:
    trainer(hangs, "finish()\ntime.sleep(1 if RANK == 3 else 0)").start_all()
    assert hangs.outcome() == ([0, 0], {0: "trained"})
    assert "warning" not in hangs.err()


def test_it_is_a_success_with_a_warning_when_a_rank_does_not_leave_after_the_end(hangs: Gang) -> None:
    hangs.timing["finish"] = 0.5
    hangs.document["hangTimeoutSeconds"] = 600
    trainer(hangs, "finish()\nstand() if RANK == 1 else None").start_all()
    assert hangs.outcome() == ([0, 0], {0: "trained"})
    assert "warning: training finished; rank 1 did not leave in order afterwards" in hangs.err()
    assert (hangs.ended[0].word["reason"], hangs.ended[0].word["step"]) == ("Finished", 5)


def test_it_is_a_success_with_a_warning_when_no_node_is_free_of_ranks_that_do_not_leave(hangs: Gang) -> None:
    trainer(hangs, "finish()\nstand()").start_all()
    assert hangs.outcome() == ([0, 0], {0: "trained"})
    assert "warning: training finished; ranks 0, 1, 2, 3 did not leave in order" in hangs.err()


def test_it_is_a_success_with_a_warning_when_a_rank_crashes_after_the_end(hangs: Gang) -> None:
    end = """
        finish()
        result = Path(os.environ["DIRECTORY"], "node-0/state/attempt-0/status/finished.json")
        while not result.exists(): time.sleep(0.02)
        if RANK == 2: os.kill(os.getpid(), signal.SIGSEGV)
        stand()
    """
    trainer(hangs, end).start_all()
    assert hangs.outcome() == ([0, 0], {0: "trained"})
    assert "warning: training finished; ranks" in hangs.err()


def test_a_rank_that_does_not_leave_is_charged_when_nobody_says_that_training_is_finished(gang: Gang) -> None:
    gang.timing["finish"] = 0.5
    gang.script("time.sleep(600 if RANK == 3 and ATTEMPT == 0 else 0)")
    gang.start_all()
    assert gang.outcome() == CHARGED_ONCE
    assert "rank 3" in gang.why()


@pytest.mark.parametrize("timeouts", [{"hangTimeoutSeconds": 2.5}, {"hangTimeoutSeconds": 600}])
def test_the_rank_that_left_early_is_named_when_the_others_wait_for_it_without_an_error(
    hangs: Gang, timeouts: dict[str, float]
) -> None:
    hangs.timing["finish"] = 600 if timeouts["hangTimeoutSeconds"] < 600 else 0.5
    hangs.document |= timeouts | {"nprocPerNode": 1}
    trainer(hangs, "sys.exit(0) if RANK == 1 else all_reduce()").start_all()
    assert hangs.outcome() == CHARGED_ONCE
    assert hangs.why().startswith("rank 1 on node 1 left early with exit code 0")


def test_the_agent_of_a_hung_gang_stops_at_once_when_it_is_asked_to(hangs: Gang) -> None:
    hangs.document["hangTimeoutSeconds"] = 600
    trainer(hangs, "(STATUS / f'hangs-{RANK}').touch()\ncompute()").start_all()
    for node in (0, 1):
        status = hangs.folder(node) / "state" / "attempt-0" / "status"
        hangs.wait(*(str(status / f"hangs-{2 * node + local}") for local in (0, 1)))
    for agent in hangs.nodes.values():
        os.kill(agent.pid, signal.SIGTERM)
    assert hangs.outcome() == ([143, 143], {0: "stopped"})


@pytest.mark.gang
def test_the_busy_rank_of_torch_is_named_when_another_one_waits_for_it_in_gloo(tmp_path: Path) -> None:
    gang = Gang(tmp_path, nproc=1, torch=True)
    gang.timing |= {"peer_deadline": 12.0, "teardown": 10.0}
    gang.document |= {"hangTimeoutSeconds": 2, "progressRegex": r"step (?P<step>\d+)"}
    gang.script("""
        if ATTEMPT: sys.exit(0)
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        def tokenize():
            while True: pass
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
        for step in range(1, 100_000):
            if RANK == 0: print("step", step, flush=True)
            if RANK == 1 and step == 20: tokenize()
            model(torch.ones(1)).sum().backward()
    """)
    try:
        gang.start_all()
        assert gang.outcome() == CHARGED_ONCE
    finally:
        gang.clean_up()
    assert "rank 1 on node 1 is busy elsewhere while the others wait for it" in gang.why()
    assert "in tokenize)" in gang.why()
