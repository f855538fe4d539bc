"""Somebody asks agents to stop, at every moment of their lives: all of it is free."""

import os
import signal
from pathlib import Path

import pytest

from tests.agent.gang import Gang
from tests.agent.harness import until

SAVES = """
    if RANK == 0: print("step 10", flush=True)
    def stop(*_):
        touch(f"saved-{RANK}")
        if RANK == 0:
            state = {"step": 10, "checkpoint": "step-00000010"}
            Path(os.environ["DDPK8S_STATUS_DIR"], "stopped.json").write_text(json.dumps(state))
        sys.exit(143)
    signal.signal(signal.SIGTERM, stop)
    touch(f"handles-{RANK}")
    time.sleep(600)
"""
HANDLERS = tuple(f"handles-{rank}" for rank in range(4))


def test_the_stopped_node_leaves_and_the_other_goes_on_with_its_successor_when_one_is_stopped(
    gang: Gang,
) -> None:
    gang.trains(SAVES).start_all().wait(*HANDLERS)
    gang.nodes[1].terminate()
    assert gang.end_node(1).code == 143
    gang.said("waiting for node rank 1 (1 of 2 are here)")
    assert gang.nodes[0].poll() is None
    assert (gang.ended[1].word["reason"], gang.ended[1].word["restarts"]) == ("Stopped", 0)
    gang.start_node(1)
    assert gang.outcome() == ([0, 0], {0: "stopped", 1: "trained"})


def test_the_first_node_leaves_last_and_is_waited_for_when_it_is_stopped(gang: Gang) -> None:
    gang.trains(SAVES).start_all().wait(*HANDLERS)
    gang.nodes[0].terminate()
    assert gang.end_node(0).code == 143
    assert gang.kinds() == {0: "stopped"}
    assert gang.nodes[1].poll() is None
    gang.start_node(0)
    assert gang.outcome() == ([0, 0], {0: "stopped", 1: "trained"})


def test_all_leave_with_their_state_saved_when_all_are_stopped(gang: Gang) -> None:
    gang.trains(SAVES).start_all().wait(*HANDLERS)
    for agent in gang.nodes.values():
        agent.terminate()
    assert gang.outcome() == ([143, 143], {0: "stopped"})
    assert all((gang.directory / f"saved-{rank}").exists() for rank in range(4))
    assert "failed" not in gang.err()
    for node in (0, 1):
        word = gang.ended[node].word
        assert (word["reason"], word["restarts"], word["rank"]) == ("Stopped", 0, None)
    assert "the state of step 10 is saved" in gang.ended[0].word["message"]


@pytest.mark.parametrize("asked", [(0,), (1,), (0, 1)])
def test_workers_without_a_handler_are_stopped_and_have_not_failed(
    gang: Gang, asked: tuple[int, ...]
) -> None:
    gang.trains().train_all()
    for node in asked:
        gang.nodes[node].terminate()
    for node in asked:
        assert gang.end_node(node).code == 143, gang.all_err()
        assert gang.ended[node].word["reason"] == "Stopped"
    assert gang.kinds() == {0: "stopped"}
    for agent in gang.nodes.values():
        agent.terminate()
    assert gang.outcome() == ([143, 143], {0: "stopped"})


def test_it_is_charged_when_a_rank_had_failed_before_anybody_was_asked_to_stop(gang: Gang) -> None:
    gang.timing["teardown"] = 60
    gang.trains("""
        signal.signal(signal.SIGTERM, lambda *_: touch(f"ended-{RANK}"))
        touch(f"waits-{RANK}")
        for rank in range(4): wait_for(f"waits-{rank}")
        if RANK == 3: raise ValueError("boom")
        wait_for("end")
        sys.exit(1)
    """).start_all()
    gang.wait("ended-0")  # because of rank 3 on the other node
    gang.nodes[0].terminate()
    (gang.directory / "end").touch()
    gang.nodes[1].terminate()
    assert gang.outcome() == ([143, 143], {0: "charged"})
    assert "ValueError: boom" in gang.why()


@pytest.mark.parametrize("node", [0, 1])
def test_an_agent_that_is_alone_leaves_when_it_is_stopped(gang: Gang, node: int) -> None:
    gang.script("touch('ran')")
    agent = gang.start_node(node)
    if node == 0:
        gang.said("waiting for node rank 1 (1 of 2 are here)")
    else:
        ledger = gang.folder(1) / "state"
        until(lambda: ledger.exists() and _handles_sigterm(agent.pid), "the agent that dials")
    agent.terminate()
    assert gang.end_node(node).code == 143
    assert gang.ended[node].word["reason"] == "Stopped"
    assert not (gang.directory / "ran").exists()


def test_an_agent_leaves_when_it_is_stopped_while_it_waits_for_the_memory_of_its_gpus(gang: Gang) -> None:
    gang.script("touch('ran')")
    tool = gang.directory / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\ntouch {gang.directory}/asked\necho 70000\n")
    tool.chmod(0o755)
    gang.document["checks"] = {"gpus": 1}
    gang.environment[1] = {"PATH": f"{tool.parent}:{os.environ['PATH']}"}
    for environment in (gang.environment.setdefault(node, {}) for node in (0, 1)):
        environment["NVIDIA_VISIBLE_DEVICES"] = "0"
    gang.start_all()
    gang.wait("asked")
    gang.nodes[1].terminate()
    assert gang.end_node(1).code == 143
    assert gang.nodes[0].poll() is None, "it waits for the next one"
    gang.nodes[0].terminate()
    assert gang.end_all() == [143, 143]
    assert not (gang.directory / "ran").exists()


def test_workers_that_ignore_it_are_killed_when_the_grace_period_is_nearly_over(gang: Gang) -> None:
    gang.document["gracePeriodSeconds"] = 2
    gang.trains("signal.signal(signal.SIGTERM, signal.SIG_IGN)").train_all()
    gang.wait(*(f"trains-{rank}-0" for rank in range(4)))
    until(lambda: all(_ignores_sigterm(gang.pid(rank)) for rank in range(4)), "the workers that ignore it")
    gang.nodes[1].terminate()
    assert gang.end_node(1).code == 143
    assert "time for stopping is over" in gang.err(1)
    gang.nodes[0].terminate()
    assert gang.outcome() == ([143, 143], {0: "stopped"})


def test_a_stop_ends_the_attempt_of_all_when_the_workers_of_the_stopped_node_save_slowly(gang: Gang) -> None:
    gang.timing["teardown"] = 0.2
    gang.trains("""
        def stop(*_):
            time.sleep(1.5)  # far longer than after a failure
            touch(f"saved-{RANK}")
            sys.exit(143)
        signal.signal(signal.SIGTERM, stop)
        touch(f"handles-{RANK}")
    """).start_all()
    gang.wait(*HANDLERS)
    for agent in gang.nodes.values():
        agent.send_signal(signal.SIGTERM)
    assert gang.outcome() == ([143, 143], {0: "stopped"})
    assert all((gang.directory / f"saved-{rank}").exists() for rank in range(4))


def _mask(pid: int, name: str) -> bool:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return bool(int(text.partition(f"{name}:")[2].split()[0], 16) & 1 << (signal.SIGTERM - 1))


def _handles_sigterm(pid: int) -> bool:
    return _mask(pid, "SigCgt")


def _ignores_sigterm(pid: int) -> bool:
    return _mask(pid, "SigIgn")
