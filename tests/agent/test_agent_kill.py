"""What dies without a word: torchrun, the agent, both; and what they leave behind."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ddpk8s_agent.preflight import free_port
from tests.agent.harness import Job, alive, until

pytestmark = pytest.mark.gang


def running(pid: int) -> bool:
    """Return whether a process has memory, which one that is ending has given back."""
    try:
        return bool(Path(f"/proc/{pid}/statm").read_text().split()[0] != "0")
    except OSError:
        return False


SLEEPS = "touch(f'pid-{RANK}-{ATTEMPT}', os.getpid()); time.sleep(600)"


def test_workers_are_ended_and_start_again_when_torchrun_is_killed(job: Job) -> None:
    job.document["maxRestarts"] = 1
    job.script(SLEEPS.replace("time.sleep(600)", "time.sleep(0 if ATTEMPT else 600)"))
    agent = job.start()
    first = [job.number("pid-0-0"), job.number("pid-1-0")]
    os.kill(job.launcher(agent), signal.SIGKILL)
    ended = job.end(agent)
    assert ended.code == 0, ended.err
    assert "torchrun was killed by SIGKILL" in ended.err
    assert ended.word["restarts"] == 1
    assert not any(alive(pid) for pid in first)


def test_the_gang_ends_and_the_lock_is_free_when_the_agent_is_killed(job: Job) -> None:
    job.script(SLEEPS)
    with (job.directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        agent = job.start("--keep-fd", str(lock.fileno()), pass_fds=[lock.fileno()])
    job.wait("pid-0-0", "pid-1-0")
    launcher = job.launcher(agent)
    with (job.directory / "lock").open("w") as second:
        with pytest.raises(BlockingIOError):
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        agent.kill()
        agent.wait()
        fcntl.flock(second, fcntl.LOCK_EX)
        # A process that ends gives its files back a moment before it is gone, but its memory before that.
        assert not running(launcher), "the lock was free before torchrun was gone"
    assert job.processes() == []


def test_the_next_agent_kills_what_is_left_when_agent_and_torchrun_were_both_killed(job: Job) -> None:
    job.script(SLEEPS.replace("time.sleep(600)", "time.sleep(0 if ATTEMPT else 600)"))
    agent = job.start()
    left = [job.number("pid-0-0"), job.number("pid-1-0")]
    launcher = job.launcher(agent)
    os.kill(launcher, signal.SIGSTOP)  # so that it cannot see to its workers
    agent.kill()
    os.kill(launcher, signal.SIGKILL)
    agent.wait()
    assert all(alive(pid) for pid in left)
    ended = job.run()
    assert ended.code == 0, ended.err
    assert "left behind" in ended.err
    assert not any(alive(pid) for pid in left)
    assert ended.word["attempt"] == 1, "attempts are counted on"


def test_a_port_taken_after_preflight_is_tried_again_and_charged_to_nobody(job: Job) -> None:
    job.document["masterPort"] = free_port()
    agent = job.script("").start()
    job.launcher(agent)
    with socket.create_server(("127.0.0.1", job.document["masterPort"])):
        until(lambda: (job.state / "attempt-0" / "result.json").exists(), "the end of the first attempt")
    ended = job.end(agent)
    assert ended.code == 0, ended.err
    assert "the port of torchrun was taken just before it started; trying it again" in ended.err
    assert ended.word["restarts"] == 0


def test_a_grandchild_in_a_session_of_its_own_is_ended_when_the_attempt_is_over(job: Job) -> None:
    job.script("""
        if RANK == 0:
            hidden = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
            touch("hidden", hidden.pid)
    """)
    ended = job.run()
    assert ended.code == 0, ended.err
    assert not alive(job.number("hidden"))


def test_a_stop_by_somebody_else_is_charged_when_one_worker_gets_it(job: Job) -> None:
    job.script(SLEEPS)
    agent = job.start()
    job.wait("pid-0-0")
    os.kill(job.number("pid-1-0"), signal.SIGTERM)
    ended = job.end(agent)
    assert ended.code == 1
    assert (ended.word["rank"], ended.word["exitCode"]) == (1, -signal.SIGTERM)
    assert "not by this agent" in ended.word["message"]


def test_the_agent_still_obeys_when_nobody_reads_its_output(job: Job) -> None:
    job.script("""
        for _ in range(20_000): print("x" * 100)
        sys.stdout.flush(); touch(f"ready-{RANK}"); time.sleep(600)
    """)
    agent = job.start(bufsize=0)
    job.wait("ready-0", "ready-1")  # their output is many times what a pipe holds
    agent.terminate()
    until(lambda: not job.processes(), "the end of the workers")
    assert agent.wait() == 143


def test_the_training_goes_on_when_the_reader_of_its_output_is_gone(job: Job) -> None:
    job.script("wait_for('closed'); print('x', flush=True); time.sleep(0.5); touch(f'done-{RANK}')")
    agent = job.start(stderr=subprocess.DEVNULL)
    assert agent.stdout is not None
    agent.stdout.close()
    (job.directory / "closed").touch()
    assert agent.wait() == 0
    job.wait("done-0", "done-1")


def test_a_zipapp_of_the_agent_runs_a_gang(job: Job) -> None:
    import zipapp

    import ddpk8s_agent

    source = Path(ddpk8s_agent.__file__).parent
    staged = job.directory / "staged" / "ddpk8s_agent"
    for file in source.rglob("*.py"):
        copy = staged / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    archive = job.directory / "agent.pyz"
    zipapp.create_archive(staged.parent, archive, main="ddpk8s_agent.__main__:start", compressed=True)
    assert archive.stat().st_size < 200 * 1024
    # In a directory whose files are called like modules of the standard library.
    (job.directory / "json.py").write_text("raise ImportError('not the standard library')")
    job.script("").directory.joinpath("train.py").write_text("open(f'ran', 'a').write('x')")
    ended = job.end(job.start(command=(sys.executable, "-I", str(archive)), cwd=job.directory))
    assert ended.code == 0, ended.err
    assert (job.directory / "ran").read_text() == "xx"
