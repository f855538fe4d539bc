"""`ddpk8s run --nnodes 2`: two agents as in two pods, a script's all-reduce between them, and what is killed of it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agent.harness import PATIENCE, until
from tests.cli.user import User

pytestmark = pytest.mark.gang

SCRIPT = """
    import os, sys, time
    from datetime import timedelta
    from pathlib import Path
    import torch
    import torch.distributed as dist

    here, attempt = Path(sys.argv[1]), os.environ["DDPK8S_ATTEMPT"]
    dist.init_process_group("gloo", timeout=timedelta(seconds=90))
    rank, world = dist.get_rank(), dist.get_world_size()
    facts = (world, os.environ["DDPK8S_NODE_RANK"], os.environ["LOCAL_RANK"], os.environ["OMP_NUM_THREADS"])
    def touch(name, text="x"):
        (here / f".{name}").write_text(str(text))
        (here / f".{name}").rename(here / name)
    step = 0
    while True:
        fails = rank == 1 and (here / "fail").exists() and attempt == "0"
        value = torch.tensor([rank + 1.0, float((here / "go").exists())])
        dist.all_reduce(value)
        assert value[0] == world * (world + 1) / 2
        step += 1
        if step == 1:
            touch(f"ready-{rank}-{attempt}", os.getpid())
            touch(f"facts-{rank}", " ".join(map(str, facts)))
        if rank == 0 and step % 50 == 0:
            print(f"step {step}", flush=True)
        if fails:
            raise ValueError("boom")
        if value[1]:
            break
        time.sleep(0.02)
    dist.destroy_process_group()
    if rank == 0:
        print("result", int(value[0]), flush=True)
"""
TWO = ("jobs/job.yaml", "--nnodes", "2", "--nproc", "1")


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    user = User(tmp_path)
    policy = {"maxRestarts": 2, "gracePeriod": "30s", "progressRegex": r"step (?P<step>\d+)"}
    user.writes(SCRIPT, failurePolicy=policy)
    yield user
    (user.shared / "go").touch() if user.shared.exists() else None
    for process in user.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def agent(user: User, node: int) -> int:
    """Return the pid of a node's agent."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            environment = (entry / "environ").read_bytes().split(b"\0")
            ours = b"ddpk8s_agent" in words and any(str(user.runs).encode() in word for word in words)
            if ours and f"DDPK8S_NODE_RANK={node}".encode() in environment:
                return int(entry.name)
    raise AssertionError(f"node {node} has no agent")


def end(process: "subprocess.Popen[str]") -> tuple[int, list[str], list[str]]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.splitlines(), err.splitlines()


def attempts(user: User) -> list[list[str]]:
    """Return the names of attempts by node."""
    run_id = user.record()["runId"]
    states = [user.runs / run_id, user.runs / "node-1" / run_id]
    return [sorted(path.name for path in state.glob("attempt-*")) for state in states]


def test_two_nodes_train_together_and_share_the_machine(user: User) -> None:
    process = user.starts(*TWO)
    user.sees("ready-0-0", "ready-1-0")
    (user.shared / "go").touch()
    code, out, err = end(process)
    assert code == 0, err
    assert [line for line in out if line.endswith("result 3")]
    cores = len(os.sched_getaffinity(0))
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, cores // 2))
    assert (user.shared / "facts-0").read_text() == f"2 0 0 {threads}"
    assert (user.shared / "facts-1").read_text() == f"2 1 0 {threads}"
    assert f"spec.topology: 1 node x 2 -> 2 nodes x 1 ({cores} cores here)" in err
    assert attempts(user) == [["attempt-0"], ["attempt-0"]]
    assert user.record()["state"] == "finished"
    assert out[-1] == f"  logs        .ddpk8s/runs/mine/{user.record()['runId']}/attempt-0"


@pytest.mark.parametrize("node", [0, 1])
def test_a_killed_agent_is_replaced_and_the_run_finishes(user: User, node: int) -> None:
    process = user.starts(*TWO)
    user.sees("ready-0-0", "ready-1-0")
    os.kill(agent(user, node), signal.SIGKILL)
    user.sees("ready-0-1", "ready-1-1")
    (user.shared / "go").touch()
    code, out, err = end(process)
    assert code == 0, err
    how = f"node {node}'s agent was killed by SIGKILL; starting it again, as Kubernetes would replace the pod"
    assert err.count(how) == 1
    assert [line for line in out if line.endswith("result 3")]
    assert attempts(user) == [["attempt-0", "attempt-1"]] * 2
    assert user.record()["lastWord"]["attempt"] == 1


def test_a_rank_that_fails_on_node_1_is_named_and_both_nodes_start_again(user: User) -> None:
    process = user.starts(*TWO)
    user.sees("ready-0-0", "ready-1-0")
    (user.shared / "fail").touch()
    user.sees("ready-0-1", "ready-1-1")
    (user.shared / "go").touch()
    code, _, err = end(process)
    assert code == 0, err
    told = next(line for line in err if line.startswith("ddpk8s-agent: attempt 0 failed"))
    assert "rank 1" in told
    assert "ValueError: boom" in told
    assert any("restart 1 of 2" in line for line in err)


def test_the_last_line_leads_to_the_logs_of_the_node_that_failed(user: User) -> None:
    process = user.starts(*TWO, "--set", "spec.failurePolicy.maxRestarts=0", "--quiet")
    user.sees("ready-0-0", "ready-1-0")
    (user.shared / "fail").touch()
    code, out, err = end(process)
    assert code == 1, err
    assert out == []
    logs = f".ddpk8s/runs/mine/node-1/{user.record()['runId']}/attempt-0"
    assert f"  logs: {logs}" in err
    assert "boom" in (user.directory / logs / "rank-1.stderr.log").read_text()


def test_sigterm_stops_both_and_one_node_goes_on_with_the_count_of_attempts(user: User) -> None:
    process = user.starts(*TWO)
    user.sees("ready-0-0", "ready-1-0")
    process.terminate()
    code, _, err = end(process)
    assert code == 143, err
    assert err[-1] == "mine stopped; run the same command again"
    until(user.lock_is_free, "the end of both gangs")
    (user.shared / "go").touch()
    code, _, again = user.runs_to_the_end("jobs/job.yaml", "--nproc", "1")
    assert code == 0, again
    user.sees("ready-0-1")
    assert attempts(user) == [["attempt-0", "attempt-1"], ["attempt-0"]]
