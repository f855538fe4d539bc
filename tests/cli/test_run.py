"""`ddpk8s run` as a user meets it, with scripts of the user's own."""

import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.harness import PATIENCE, until
from tests.cli.user import Screen, User, own_terminal

SAVES = """
    import os, signal, sys, time
    from pathlib import Path
    rank, here = int(os.environ["RANK"]), Path(sys.argv[1])
    def stop(*_):
        (here / f"saved-{rank}-{os.environ['DDPK8S_ATTEMPT']}").touch()
        sys.exit(143)
    signal.signal(signal.SIGTERM, stop)
    (here / f"ready-{rank}-{os.environ['DDPK8S_ATTEMPT']}").touch()
    while not (here / "go").exists(): time.sleep(0.02)
"""


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    user = User(tmp_path)
    yield user
    (user.shared / "go").touch() if user.shared.exists() else None
    for process in user.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.gang
def test_an_own_script_runs_in_its_directory_with_mapped_paths_and_every_substitution_is_told(
    user: User,
) -> None:
    script = """
        import os, sys
        if os.environ["RANK"] == "0":
            print("step 2 of 4")
            print("args", sys.argv[1:], "cwd", os.path.basename(os.getcwd()), "token", os.environ.get("MY_TOKEN"))
    """
    policy = {"maxRestarts": 0, "progressRegex": r"step (?P<step>\d+) of (?P<total>\d+)"}
    secrets = [{"name": "s", "key": "k", "env": "MY_TOKEN"}]
    user.writes(script, topology={"nnodes": 3, "nprocPerNode": 2}, failurePolicy=policy, secrets=secrets)
    code, out, err = user.runs_to_the_end(
        "-f", "jobs/job.yaml", "--set", "spec.entrypoint.args=[--in=/data/x]"
    )
    assert code == 0, err
    assert f"args ['--in={user.shared}/x'] cwd src token None" in out
    assert out.splitlines()[-2].startswith("mine finished at step 2 in ")
    told = err.splitlines()
    assert "spec.storage[data]: /data -> .ddpk8s/volumes/data" in told
    assert "spec.topology: 3 nodes x 2 -> 1 node x 2" in err
    assert "spec.secrets[s]: MY_TOKEN is not set in your environment" in told
    assert "step 2/4" in told, "off a terminal, progress is a plain line"
    assert user.record()["state"] == "finished"
    assert user.shared.is_dir()


@pytest.mark.gang
def test_a_second_run_is_refused_and_a_killed_one_saves_and_is_continued(user: User) -> None:
    first = user.writes(SAVES).starts()
    user.sees("ready-0-0", "ready-1-0")
    run_id = user.record()["runId"]
    code, _, err = user.runs_to_the_end()
    assert code == 2
    assert f"mine is running already in this directory: pid {first.pid}, since" in err
    assert run_id in err
    assert user.record()["runId"] == run_id

    first.kill()
    user.sees("saved-0-0", "saved-1-0")
    until(user.lock_is_free, "the end of the gang")
    (user.shared / "go").touch()
    code, _, err = user.runs_to_the_end()
    assert code == 0, err
    assert f"continuing run {run_id}, which was killed" in err
    user.sees("ready-0-1", "ready-1-1")
    assert user.record()["runId"] == run_id


@pytest.mark.gang
def test_ctrl_c_in_a_terminal_saves_and_says_how_to_go_on(user: User) -> None:
    user.writes(SAVES)
    ours, theirs = pty.openpty()
    with user.starts(
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=own_terminal
    ) as run:
        os.close(theirs)
        screen = Screen(ours)
        until(lambda: screen.read() and (user.shared / "ready-0-0").exists(), "worker 0")
        user.sees("ready-1-0")
        os.write(ours, b"\x03")
        until(lambda: screen.read() and run.poll() is not None, "the end")
        assert run.returncode == 143
    text = screen.text
    assert "stopping your script; Ctrl-C again kills it" in text
    assert "checkpoint" not in text, "nobody knows what a script of the user's saves"
    assert "mine stopped; run the same command again" in text
    assert "Traceback" not in text
    user.sees("saved-0-0", "saved-1-0")
    assert user.record()["state"] == "stopped"


@pytest.mark.gang
def test_a_second_ctrl_c_stops_at_once(user: User) -> None:
    script = SAVES.replace("sys.exit(143)", "time.sleep(600)")
    run = user.writes(script).starts()
    user.sees("ready-0-0", "ready-1-0")
    run.send_signal(signal.SIGINT)
    user.sees("saved-0-0", "saved-1-0")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == 143
    assert "killing your script" in err
    assert "asked to stop at once, killing all processes" in err
    assert "time for stopping" not in err
    assert "is saved" not in err


@pytest.mark.gang
def test_a_failure_ends_with_the_paragraph_that_helps(user: User) -> None:
    user.writes(
        """
        import os, time
        print("chatter", flush=True)
        if os.environ["RANK"] == "1":
            raise ValueError("boom")
        time.sleep(600)
        """
    )
    code, out, err = user.runs_to_the_end("jobs/job.yaml", "--quiet")
    assert code == 1
    assert out == ""
    last = err.splitlines()[-3:]
    assert last[0].startswith("mine failed: rank 1 (pid ")
    assert "ValueError: boom" in last[0]
    assert last[1] == f"  logs: .ddpk8s/runs/mine/{user.record()['runId']}/attempt-0"
    assert last[2] == "  next: mend the cause, then run the same command again"
    assert "spec.storage" not in err, "quiet"
    assert "[rank" not in err, "quiet: the agent shows the last lines of who failed"


def test_a_mistake_in_the_file_is_2_and_nothing_is_made(user: User) -> None:
    user.writes("", topology={"nprocPerNode": 0})
    code, _, err = user.runs_to_the_end()
    assert code == 2
    assert "spec.topology.nprocPerNode" in err
    assert not (user.directory / ".ddpk8s").exists()


def test_missing_data_is_78_and_names_the_directory_that_stands_for_the_volume(user: User) -> None:
    data = {"train": "/data/train.jsonl", "labelColumn": "stars"}
    training = {"model": {"path": "bert-base-chinese"}, "data": data, "maxSteps": 2}
    user.writes("", entrypoint=None, training=training, failurePolicy={"maxRestarts": 1})
    code, _, err = user.runs_to_the_end()
    assert code == 78
    assert f"spec.training.data.train: cannot read {user.shared}/train.jsonl: no such file" in err
    assert "hint: .ddpk8s/volumes/data stands for /data (spec.storage[data]) on this machine; put" in err
    assert 'put train.jsonl there: one JSON object a line, {"text": ..., "stars": ...}' in err
    assert "warning" not in err, "where a pod finds its checkpoints again is of no concern here"
    assert err.splitlines()[-1] == "  next: correct it, then run the same command again"
    assert user.record()["state"] == "mistake"


def test_options_that_exclude_each_other_are_a_usage_error(user: User) -> None:
    code, _, err = user.writes("").runs_to_the_end("jobs/job.yaml", "--fresh", "--resume")
    assert code == 2
    assert "exclude each other" in err


def test_no_node_and_too_many_nodes_are_usage_errors(user: User) -> None:
    user.writes("")
    for count in ("0", "65", "two"):
        code, _, err = user.runs_to_the_end("jobs/job.yaml", "--nnodes", count)
        assert code == 2
        assert "--nnodes" in err
    assert not (user.directory / ".ddpk8s").exists()
