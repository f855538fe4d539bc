"""Agents that die without a word: what their loss costs, who remembers the attempts, and what is left behind."""

import os
import shutil
import signal
import subprocess
from typing import Any

import pytest

from tests.agent.gang import Gang
from tests.agent.harness import alive, until
from tests.agent.recorder import Recorder

STEPS = """
    touch(f"begun-{RANK}-{ATTEMPT}")
    if RANK == 0: print("step", ATTEMPT + 1, flush=True)
    if ATTEMPT < 2: time.sleep(600)
"""


def restart_node(gang: Gang, node: int, *, new_pod: bool = True) -> None:
    """Kill a node; start it again, in a new pod or in the same one."""
    gang.kill_node(node)
    if new_pod:
        shutil.rmtree(gang.folder(node) / "state")
    gang.start_node(node)


def own_ledger(gang: Gang, node: int) -> dict[str, Any]:
    return gang.read(gang.folder(node) / "state" / "ledger.json")


def test_the_loss_is_free_and_the_others_wait_in_place_when_an_agent_is_killed(watched: Gang) -> None:
    gang = watched.trains().train_all()
    agent = gang.nodes[0]
    gang.kill_node(1)
    gang.said("waiting for node rank 1")
    assert agent.poll() is None
    gang.start_node(1)
    assert gang.outcome() == ([0, 0], {0: "free", 1: "trained"})
    assert gang.why() == "node 1 closed its connection without a word: its agent was killed"
    assert "a lost node is not charged" in gang.err()
    assert gang.ended[0].word["restarts"] == 0


@pytest.fixture(autouse=True)
def patience(gang: Gang) -> None:
    """Have node 0 wait for a moment only to tell the end to whoever is gone."""
    gang.timing |= {"acknowledge": 1.0, "margin": 0.5}


@pytest.mark.parametrize("new_pod", [True, False])
def test_the_second_kill_is_charged_and_blamed_on_memory_when_nothing_came_of_the_first(
    watched: Gang, new_pod: bool
) -> None:
    gang = watched
    gang.document["maxRestarts"] = 0
    gang.trains(attempts=2).train_all()
    restart_node(gang, 1, new_pod=new_pod)
    gang.wait(*(f"trains-{rank}-1" for rank in range(4)))
    gang.kill_node(1)
    assert gang.end_node(0).code == 1
    assert gang.kinds() == {0: "free", 1: "charged"}
    word = gang.ended[0].word
    assert (word["reason"], word["node"]) == ("NodeKilled", 1)
    assert "killed without a word for the second time, with no progress between" in word["message"]
    assert "spec.resources.memory" in gang.err()
    gang.start_node(1)
    assert gang.end_node(1).code == 1, "whoever comes later learns that it is over"
    assert gang.ended[1].word["reason"] == "NodeKilled"
    assert gang.processes() == []


def test_both_kills_are_free_when_there_was_progress_between(watched: Gang) -> None:
    gang = watched
    gang.document |= {"maxRestarts": 0, "progressRegex": r"step (?P<step>\d+)"}
    gang.script(STEPS)
    gang.start_all()
    for attempt in range(2):
        gang.wait(*(f"begun-{rank}-{attempt}" for rank in range(4)))
        gang.said_out(f'"step": {attempt + 1}')
        restart_node(gang, 1)
    assert gang.outcome() == ([0, 0], {0: "free", 1: "free", 2: "trained"})


@pytest.mark.parametrize("volume", [True, False])
def test_attempts_are_counted_on_when_node_0_is_killed(watched: Gang, volume: bool) -> None:
    gang = watched
    if not volume:
        gang.document["checkpointDirectory"] = None  # only the memory of node 1 is left
    gang.trains("if RANK == 1 and ATTEMPT == 0: sys.exit(5)", attempts=2).start_all()
    gang.wait(*(f"trains-{rank}-1" for rank in range(4)))
    agent = gang.nodes[1]
    restart_node(gang, 0)
    assert gang.end_all() == [0, 0]
    assert gang.nodes[1] is agent
    ledger = gang.ledger() if volume else own_ledger(gang, 1)
    kinds = [record["kind"] for record in ledger["records"].values()]
    assert kinds == ["charged", "free", "trained"]
    assert "node 0 closed its connection without a word" in ledger["records"]["1"]["why"]
    assert (gang.ended[0].word["attempt"], gang.ended[0].word["restarts"]) == (2, 1)
    assert gang.processes() == []


def test_the_failure_is_charged_once_and_the_same_rank_named_when_node_0_is_killed_before_the_verdict(
    watched: Gang,
) -> None:
    gang = watched
    gang.trains("if RANK == 3: wait_for('fail'); sys.exit(7)").train_all()
    gang.nodes[0].send_signal(signal.SIGSTOP)
    gang.touch("fail")
    result = gang.folder(1) / "state" / "attempt-0" / "result.json"
    until(result.exists, "the end of the attempt on node 1")
    restart_node(gang, 0)
    assert gang.outcome() == ([0, 0], {0: "charged", 1: "trained"})
    assert gang.why().startswith("rank 3 on node 1")
    assert "failed with exit code 7" in gang.why()
    assert gang.ended[0].word["restarts"] == 1


def test_it_trains_again_and_finds_nothing_to_do_when_node_0_is_killed_before_the_end_is_kept(
    watched: Gang,
) -> None:
    gang = watched
    gang.script("touch(f'begun-{RANK}-{ATTEMPT}'); wait_for('finish'); touch(f'done-{RANK}-{ATTEMPT}')")
    gang.start_all()
    gang.wait(*(f"begun-{rank}-0" for rank in range(4)))
    gang.nodes[0].send_signal(signal.SIGSTOP)
    gang.touch("finish")
    until((gang.folder(1) / "state" / "attempt-0" / "result.json").exists, "the end of node 1's workers")
    restart_node(gang, 0)
    assert gang.outcome() == ([0, 0], {0: "free", 1: "trained"})


def test_nobody_trains_again_when_node_0_is_killed_after_the_end_is_kept(watched: Gang) -> None:
    gang = watched
    gang.script("touch(f'begun-{RANK}-{ATTEMPT}')").directory.joinpath("shared").mkdir()
    gang.start_all()
    until(lambda: gang.kept("end"), "the end of the job on the volume")
    restart_node(gang, 0)
    assert gang.outcome() == ([0, 0], {0: "trained"})
    restart_node(gang, 1)  # Kubernetes may replace a pod that was told to go, though it ended well
    assert gang.end_node(1).code == 0
    assert not (gang.directory / "begun-0-1").exists()


def test_the_attempt_starts_only_when_nothing_is_left_of_the_one_before(watched: Gang) -> None:
    gang = watched.trains("""
        if RANK == 2:
            ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
            # A data loader that lives on, and what hides in a session of its own.
            for name, own in (("loader", False), ("hidden", True)):
                touch(name, subprocess.Popen([sys.executable, "-c", ignore], start_new_session=own).pid)
            os._exit(1)
    """)
    gang.start_all()
    assert gang.outcome() == ([0, 0], {0: "charged", 1: "trained"})
    assert not alive(gang.number("loader"))
    assert not alive(gang.number("hidden"))


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
@pytest.mark.gang
def test_the_node_leaves_and_names_the_process_when_one_cannot_be_killed(watched: Gang) -> None:
    gang = watched
    # An agent that may not signal other users stands before such a process as before one in a driver's sleep.
    gang.prefix[1] = ["setpriv", "--bounding-set", "-kill", "--inh-caps", "-kill"]
    gang.trains("""
        if RANK == 2:
            stays = "import os, time; os.setuid(65534); time.sleep(600)"
            touch("stays", subprocess.Popen([sys.executable, "-c", stays], start_new_session=True).pid)
            time.sleep(0.5)
            os._exit(1)
    """).train_all()
    assert gang.end_node(1).code == 143
    pid = gang.number("stays")
    assert alive(pid)
    assert gang.ended[1].word["reason"] == "NodeUnhealthy"
    assert f"processes {pid} do not end, not even by SIGKILL" in gang.ended[1].word["message"]
    gang.said("waiting for node rank 1")
    os.kill(pid, signal.SIGKILL)
    del gang.prefix[1]
    gang.start_node(1)
    assert gang.end_all() == [0, 0]
    assert gang.kinds() == {0: "charged", 1: "trained"}
    assert "rank 2 on node 1" in gang.ledger()["records"]["0"]["why"]


@pytest.mark.parametrize("missing", [[1], [0, 2]])
def test_it_gives_up_and_names_who_is_missing_when_nodes_never_come(gang: Gang, missing: list[int]) -> None:
    gang.document |= {"nnodes": 3, "startDeadlineSeconds": 1}
    gang.timing["arm"] = 0.5
    gang.script("touch('never')")
    here = [node for node in range(3) if node not in missing]
    for node in here:
        gang.start_node(node)
    assert gang.end_all() == [1] * len(here)
    word = gang.ended[here[0]].word
    assert word["reason"] == "StartDeadline"
    if 0 in here:
        assert word["message"] == "node rank 1 did not join within 1 s (spec.failurePolicy.startDeadline)"
        assert "waiting for node rank" in gang.err() or gang.document["startDeadlineSeconds"] < 2
    else:
        assert "node 0 could not be reached" in word["message"]
        assert f"127.0.0.1:{gang.document['gangPort']}: connection refused" in word["message"]
    assert not (gang.directory / "never").exists()
    assert not (gang.directory / "shared" / ".ddpk8s" / "run-1.json").exists(), (
        "nothing was started or charged"
    )


def test_two_gangs_at_once_would_be_seen(gang: Gang) -> None:
    recorder = Recorder(gang)
    environment = {**os.environ, "DIRECTORY": str(gang.directory), "DDPK8S_STATUS_DIR": "x"}
    both = [
        subprocess.Popen(["sleep", "60"], env={**environment, "DDPK8S_ATTEMPT": str(n)}) for n in range(2)
    ]
    until(lambda: recorder.overlaps, "the recorder's alarm")
    for each in both:
        each.kill()
        each.wait()
    with pytest.raises(AssertionError, match="two gangs at once"):
        recorder.close()
