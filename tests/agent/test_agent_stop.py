"""SIGTERM to the agent: what the workers get of it, and what comes out."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.agent.harness import Job, alive, until

pytestmark = pytest.mark.gang

SAVES_ON_SIGTERM = """
    def stop(*_):
        touch(f"asked-{RANK}")
        time.sleep(0.5)
        touch(f"saved-{RANK}")
        sys.exit(143)
    signal.signal(signal.SIGTERM, stop)
"""


def test_workers_save_and_their_children_live_meanwhile_when_the_agent_is_stopped(job: Job) -> None:
    job.document["maxRestarts"] = 5
    job.script(
        SAVES_ON_SIGTERM
        + """
    loader = subprocess.Popen([sys.executable, "-c",
        "import signal, time, pathlib, sys\\n"
        "def note(*_): pathlib.Path(sys.argv[1]).touch(); sys.exit()\\n"
        "signal.signal(signal.SIGTERM, note); pathlib.Path(sys.argv[2]).touch(); time.sleep(600)",
        os.environ["DIRECTORY"] + f"/loader-hit-{RANK}", os.environ["DIRECTORY"] + f"/loader-{RANK}"])
    def stop(*_):
        touch(f"asked-{RANK}")
        time.sleep(0.5)
        touch(f"saved-{RANK}", int(Path(os.environ["DIRECTORY"], f"loader-hit-{RANK}").exists()))
        sys.exit(143)
    signal.signal(signal.SIGTERM, stop)
    wait_for(f"loader-{RANK}")
    touch(f"ready-{RANK}")
    time.sleep(600)
    """
    )
    agent = job.start()
    job.wait("ready-0", "ready-1")
    agent.terminate()
    job.wait("asked-0", "asked-1")
    agent.terminate()  # asking twice changes nothing
    ended = job.end(agent)
    assert ended.code == 143, ended.err
    assert job.number("saved-0") + job.number("saved-1") == 0, "a data loader was signalled before the save"
    assert ended.word["reason"] == "Stopped"
    assert job.processes() == []


def test_workers_without_a_handler_die_and_it_is_free_when_the_agent_is_stopped(job: Job) -> None:
    job.document["maxRestarts"] = 5
    job.script("touch(f'ready-{RANK}'); time.sleep(600)")
    agent = job.start()
    job.wait("ready-0", "ready-1")
    agent.send_signal(signal.SIGINT)
    ended = job.end(agent)
    assert ended.code == 143
    assert ended.word["restarts"] == 0
    assert "failed" not in ended.err


def test_workers_that_ignore_it_are_killed_when_the_grace_period_is_nearly_over(job: Job) -> None:
    job.document["gracePeriodSeconds"] = 4
    job.script("signal.signal(signal.SIGTERM, signal.SIG_IGN); touch(f'ready-{RANK}'); time.sleep(600)")
    agent = job.start()
    job.wait("ready-0", "ready-1")
    agent.terminate()
    ended = job.end(agent)
    assert ended.code == 143
    assert "killing all processes" in ended.err
    assert job.processes() == []


def test_it_is_0_when_all_workers_finish_although_the_agent_was_stopped(job: Job) -> None:
    job.script(
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); touch(f'ready-{RANK}'); time.sleep(600)"
    )
    agent = job.start()
    job.wait("ready-0", "ready-1")
    agent.terminate()
    assert job.end(agent).code == 0


def test_everything_ends_without_saving_when_sigquit_says_at_once(job: Job) -> None:
    job.script(SAVES_ON_SIGTERM.replace("0.5", "600") + "    touch(f'ready-{RANK}'); time.sleep(600)")
    agent = job.start()
    job.wait("ready-0", "ready-1")
    agent.terminate()
    job.wait("asked-0", "asked-1")
    agent.send_signal(signal.SIGQUIT)
    ended = job.end(agent)
    assert ended.code == 143
    assert "asked to stop at once" in ended.err
    assert "time for stopping" not in ended.err
    assert job.processes() == []
    assert not (job.directory / "saved-0").exists()


def test_nothing_starts_when_it_is_stopped_in_preflight(job: Job) -> None:
    job.script("touch('ran')")
    job.document["checks"] = {"readable": [{"path": f"/nowhere/{n}", "field": "f"} for n in range(50_000)]}
    agent = job.start()
    caught = Path(f"/proc/{agent.pid}/status")
    handled = 1 << (signal.SIGTERM - 1)
    until(lambda: int(caught.read_text().partition("SigCgt:")[2].split()[0], 16) & handled, "the handler")
    agent.terminate()
    ended = job.end(agent)
    assert ended.code == 143, ended.err[:500]
    assert not (job.directory / "ran").exists()
    assert not (job.state / "attempt-0").exists()


def test_no_worker_starts_when_it_is_stopped_while_torch_is_imported(job: Job) -> None:
    job.script("touch('ran')")
    agent = job.start()
    launcher = job.launcher(agent)
    agent.terminate()
    ended = job.end(agent)
    assert ended.code == 143
    assert not (job.directory / "ran").exists()
    assert not alive(launcher)


def test_the_gang_stops_in_order_when_the_parent_of_the_agent_dies(job: Job) -> None:
    job.script(SAVES_ON_SIGTERM + "    touch(f'ready-{RANK}'); time.sleep(600)")
    starter = (
        "import os, subprocess, sys; subprocess.Popen([*sys.argv[1:], '--parent', str(os.getpid())]).wait()"
    )
    parent = job.start(command=(sys.executable, "-c", starter, sys.executable, "-m", "ddpk8s_agent"))
    job.wait("ready-0", "ready-1")
    os.kill(parent.pid, signal.SIGKILL)
    job.wait("saved-0", "saved-1")
    until(lambda: not job.processes(), "the end of the gang")
    until(job.word.exists, "the last word")
