"""`ddpk8s run` with the bundled trainer, and what a bad day does to it: kills by pid, signals, a harmed file."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.harness import losses, training

pytestmark = pytest.mark.gang

STEPS = 24  # four epochs of 96 samples in batches of 16


def write_job(folder: Path, **changes: Any) -> Path:
    """Write a job of the bundled trainer on tiny data; JSON is YAML."""
    document = training(folder, epochs=4, output={"export": False, "report": True}, **changes)
    document["checkpoint"]["directory"] = str(folder / "checkpoints")
    job = {
        "apiVersion": "ddpk8s.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "job"},
        "spec": {
            "image": "registry.example/trainer:1",
            "topology": {"nprocPerNode": 2},
            "failurePolicy": {"maxRestarts": 2, "gracePeriod": "60s"},
            "training": document,
        },
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps(job))
    return path


def start(folder: Path, *more: str) -> "subprocess.Popen[str]":
    """Start `ddpk8s run` in a session of its own, so that a test may kill all of it."""
    command = [Path(sys.executable).with_name("ddpk8s"), "run", "job.yaml", *more]
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Return exit code and output."""
    output, _ = process.communicate(timeout=240)
    return process.returncode, output


def wait_for_step(folder: Path, step: int) -> None:
    """Return once the metrics show `step`."""
    deadline = time.monotonic() + 200
    while max(losses(folder), default=0) < step:
        assert time.monotonic() < deadline, f"step {step} was not reached"
        time.sleep(0.01)


def processes(folder: Path, matches: Callable[[list[str]], bool]) -> list[int]:
    """Return pids of processes of this job's folder whose command line matches."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_text().split("\0")
            inside = str(folder) in " ".join(words) or (entry / "cwd").resolve() == folder.resolve()
        except (OSError, ValueError):
            continue
        if entry.name.isdigit() and inside and matches(words):
            found.append(int(entry.name))
    return found


def workers(folder: Path) -> list[int]:
    return processes(
        folder,
        lambda words: "ddpk8s_trainer" in words and "--config" in words and "ddpk8s_agent" not in words,
    )


def agents(folder: Path) -> list[int]:
    return processes(folder, lambda words: "ddpk8s_agent" in words)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    folder = tmp_path_factory.mktemp("undisturbed")
    write_job(folder)
    code, output = finish(start(folder))
    assert code == 0, output
    assert len(losses(folder)) == STEPS
    return losses(folder)


def test_worker_killed_is_restarted_in_place_and_named(tmp_path: Path, undisturbed: dict[int, float]) -> None:
    write_job(tmp_path)
    process = start(tmp_path)
    wait_for_step(tmp_path, 7)
    os.kill(workers(tmp_path)[-1], signal.SIGKILL)
    code, output = finish(process)
    assert code == 0, output
    assert "was killed by SIGKILL" in output
    assert "restart 1 of 2" in output
    assert losses(tmp_path) == undisturbed
    attempts = (tmp_path / "checkpoints" / "job" / "attempts.jsonl").read_text()
    assert attempts.count('"start"') == 2


def test_agent_killed_ends_the_gang_and_the_next_run_continues(
    tmp_path: Path, undisturbed: dict[int, float]
) -> None:
    write_job(tmp_path)
    process = start(tmp_path)
    wait_for_step(tmp_path, 7)
    os.kill(agents(tmp_path)[0], signal.SIGKILL)
    code, _output = finish(process)
    assert code != 0
    deadline = time.monotonic() + 60
    while workers(tmp_path):
        assert time.monotonic() < deadline, "workers outlived their agent"
        time.sleep(0.1)
    code, output = finish(start(tmp_path))
    assert code == 0, output
    assert "continuing from step" in output
    assert losses(tmp_path) == undisturbed


def test_everything_killed_and_the_next_run_continues(tmp_path: Path, undisturbed: dict[int, float]) -> None:
    write_job(tmp_path)
    process = start(tmp_path)
    wait_for_step(tmp_path, 10)
    for pid in [process.pid, *processes(tmp_path, lambda _words: True)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait(30)
    code, output = finish(start(tmp_path))
    assert code == 0, output
    assert "continuing from step" in output
    assert losses(tmp_path) == undisturbed


def test_sigterm_to_run_saves_and_the_next_run_continues_from_that_step(
    tmp_path: Path, undisturbed: dict[int, float]
) -> None:
    write_job(tmp_path)
    process = start(tmp_path)
    wait_for_step(tmp_path, 5)
    process.send_signal(signal.SIGTERM)
    code, output = finish(process)
    assert code == 143, output
    stopped = max(losses(tmp_path))
    assert (tmp_path / "checkpoints" / "job" / f"step-{stopped:08d}" / "manifest.json").exists()
    code, output = finish(start(tmp_path))
    assert code == 0, output
    assert f"continuing from step {stopped} of {STEPS}" in output
    assert losses(tmp_path) == undisturbed


def test_a_typing_error_between_two_runs_costs_nothing(tmp_path: Path, undisturbed: dict[int, float]) -> None:
    write_job(tmp_path)
    process = start(tmp_path)
    wait_for_step(tmp_path, 5)
    process.send_signal(signal.SIGTERM)
    code, output = finish(process)
    assert code == 143, output
    stopped = max(losses(tmp_path))
    typo = ("--set", "spec.training.data.labelColumn=lable")

    code, output = finish(start(tmp_path, *typo))
    assert code == 2, output
    assert "spec.training.data.labelColumn: label -> lable" in output
    assert f"from step {stopped}" in output
    assert "starting" not in output

    code, output = finish(start(tmp_path, *typo, "--fresh"))
    assert code == 78, output

    code, output = finish(start(tmp_path))
    assert code == 0, output
    assert f"continuing from step {stopped} of {STEPS}" in output
    assert losses(tmp_path) == undisturbed


def test_a_mistake_in_the_data_is_said_once_and_never_retried(tmp_path: Path) -> None:
    write_job(tmp_path, data__labelColumn="lable")
    code, output = finish(start(tmp_path))
    assert code == 78, output
    assert output.count("lable") == 1, output
    assert "Traceback" not in output
    assert "restart" not in output
