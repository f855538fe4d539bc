import json
import os
import subprocess
import sys
import time

import pytest

from ddpk8s_trainer.beats import INTERVAL_SECONDS, WIDTH, BeatFile


@pytest.fixture
def beats(tmp_path):
    """A beat file that is open, and what it holds."""
    file = BeatFile()
    file.open(tmp_path / "rank-0.beat")
    yield file
    file.close()


def read(tmp_path):
    content = (tmp_path / "rank-0.beat").read_bytes()
    assert (len(content), content.count(b"\n")) == (WIDTH, 1)
    return json.loads(content)


def test_a_beat_is_one_line_of_64_bytes_when_written(beats, tmp_path):
    beats.beat()
    assert (tmp_path / "rank-0.beat").read_bytes() == b'{"n": 1, "step": 0, "phase": "loading"}'.ljust(
        63
    ) + b"\n"
    beats.beat(10**12, "tokenizing")
    assert read(tmp_path) == {"n": 2, "step": 10**12, "phase": "tokenizing"}


def test_few_beats_are_written_when_many_are_made(beats, tmp_path):
    began = time.monotonic()
    for step in range(200_000):
        beats.beat(step)
    intervals = (time.monotonic() - began) / INTERVAL_SECONDS
    assert 1 <= read(tmp_path)["n"] <= intervals + 1
    time.sleep(INTERVAL_SECONDS)
    before = read(tmp_path)["n"]
    beats.beat()
    beats.beat(300_000)
    # The step that came too early is not lost, only late.
    assert read(tmp_path) == {"n": before + 1, "step": 199_999, "phase": "loading"}
    time.sleep(INTERVAL_SECONDS)
    beats.beat()
    assert read(tmp_path)["step"] == 300_000


def test_a_new_phase_is_written_at_once(beats, tmp_path):
    beats.beat(7)
    for phase in ("training", "evaluating", "evaluating", "training"):
        beats.beat(phase=phase)
        assert read(tmp_path)["phase"] == phase
    assert read(tmp_path) == {"n": 4, "step": 7, "phase": "training"}


@pytest.mark.parametrize("obstacle", ["directory", "no directory", "full disk", "read-only file"])
def test_nothing_is_disturbed_when_the_file_cannot_be_written(tmp_path, obstacle):
    path = tmp_path / "rank-0.beat"
    if obstacle == "directory":
        path.mkdir()
    elif obstacle == "no directory":
        path = tmp_path / "gone" / "rank-0.beat"
    elif obstacle == "full disk":
        path.symlink_to("/dev/full")
        with pytest.raises(OSError, match="No space left"):
            os.pwrite(os.open(path, os.O_WRONLY), b"x", 0)
    else:
        path.symlink_to("/proc/version")
    file = BeatFile()
    file.open(path)
    for phase in ("training", "evaluating"):
        file.beat(1, phase)
    file.close()
    file.beat(2, "finished")


@pytest.mark.parametrize("agent", [True, False])
def test_a_process_beats_only_when_there_is_an_agent(tmp_path, agent):
    code = "from ddpk8s_trainer.beats import beat, open_beats; open_beats(3); beat(5, 'training')"
    environment = {name: value for name, value in os.environ.items() if name != "DDPK8S_STATUS_DIR"}
    environment |= {"DDPK8S_STATUS_DIR": str(tmp_path)} if agent else {}
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.iterdir()] == (["rank-3.beat"] if agent else [])
