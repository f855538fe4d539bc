import json
import math
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

from ddpk8s_trainer.errors import ConfigurationMistake
from ddpk8s_trainer.metrics.events import EventLog, read_events


def step(number, time=0.0, **more):
    return {"event": "step", "step": number, "time": time, **more}


def written(path, *events):
    log = EventLog(path)
    for event in events:
        log.append(event)
    return log


def test_nan_and_infinity_are_strings_in_the_file_and_numbers_for_readers(tmp_path):
    path = tmp_path / "metrics.jsonl"
    written(path, step(1, loss=math.nan, gradNorm=math.inf, lossScale=-math.inf, labels=["NaN", "x"])).close()

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    raw = json.loads(path.read_text(), parse_constant=refuse)
    assert (raw["loss"], raw["gradNorm"], raw["lossScale"]) == ("NaN", "Infinity", "-Infinity")
    (event,) = read_events(path)
    assert math.isnan(event["loss"])
    assert (event["gradNorm"], event["lossScale"]) == (math.inf, -math.inf)
    assert event["labels"] == ["NaN", "x"]


def test_numpy_numbers_are_written_when_given(tmp_path):
    path = tmp_path / "metrics.jsonl"
    written(
        path,
        step(np.int64(3), loss=np.float32(0.5), gradNorm=np.float64("nan"), confusion=np.eye(2, dtype=int)),
    )
    (event,) = read_events(path)
    assert (event["step"], event["loss"], event["confusion"]) == (3, 0.5, [[1, 0], [0, 1]])
    assert math.isnan(event["gradNorm"])


def test_each_line_is_on_disk_when_append_returns(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = EventLog(path)
    for number in range(3):
        log.append(step(number))
        assert path.read_bytes().count(b"\n") == number + 1


@pytest.mark.parametrize("torn", [b'{"event":"st', b'{"event":"step","step":3}', b"\xff" * 200_000, b"{"])
def test_a_torn_last_line_is_passed_over_and_cut_when_written_on(tmp_path, torn):
    path = tmp_path / "metrics.jsonl"
    written(path, step(1), step(2)).close()
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert [event["step"] for event in read_events(path)] == [1, 2]
    log = EventLog(path)
    assert path.read_bytes() == whole
    log.append(step(3))
    assert [event["step"] for event in read_events(path)] == [1, 2, 3]


def test_everything_is_cut_when_the_only_line_is_torn(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"event":"step"')
    EventLog(path).close()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("garbage", [b"\x00\x00\n", b"not json\n", b"[1, 2]\n", b"\n", b'{"step": 2}\n'])
def test_a_broken_line_in_the_middle_is_passed_over(tmp_path, garbage):
    path = tmp_path / "metrics.jsonl"
    written(path, step(1)).close()
    with path.open("ab") as file:
        file.write(garbage)
    written(path, step(2)).close()
    assert [event["step"] for event in read_events(path)] == [1, 2]


def test_no_events_when_the_file_is_missing(tmp_path):
    assert list(read_events(tmp_path / "none.jsonl")) == []


def test_only_later_steps_go_when_cut(tmp_path):
    path = tmp_path / "metrics.jsonl"
    # The save of step 20 completes after step 30 was logged.
    log = written(
        path,
        step(10, 100.0),
        step(20, 110.0),
        {"event": "evaluation", "step": 20, "time": 111.0},
        step(30, 121.0),
        {"event": "checkpoint", "step": 20, "time": 122.0},
        step(40, 131.0),
    )
    cut = log.cut_after(20)
    assert [(event["event"], event["step"]) for event in read_events(path)] == [
        ("step", 10),
        ("step", 20),
        ("evaluation", 20),
        ("checkpoint", 20),
    ]
    assert (cut.lines, cut.last_step, cut.last_time, cut.reached) == (2, 40, 131.0, 110.0)
    log.append(step(21, 140.0))
    assert [event["step"] for event in read_events(path)][-1] == 21


def test_the_time_of_the_resumed_step_is_interpolated_when_it_has_no_line(tmp_path):
    log = written(tmp_path / "metrics.jsonl", step(10, 100.0), step(20, 110.0))
    assert log.cut_after(15).reached == 105.0


def test_nothing_is_left_when_cut_at_none(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = written(path, step(0, 1.0), step(10, 2.0))
    cut = log.cut_after(None)
    assert path.read_bytes() == b""
    assert (cut.lines, cut.last_step, cut.last_time, cut.reached) == (2, 10, 2.0, None)


def test_the_old_file_is_whole_when_a_cut_is_killed(tmp_path):
    # The child is killed at the rename, when the new file lies beside the old one.
    path = tmp_path / "metrics.jsonl"
    written(path, *(step(number) for number in range(50))).close()
    code = """
import os, signal, sys
from pathlib import Path
from ddpk8s_trainer.metrics.events import EventLog
sys.addaudithook(lambda event, _: event == "os.rename" and os.kill(os.getpid(), signal.SIGKILL))
EventLog(Path(sys.argv[1])).cut_after(10)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(read_events(path))) == 50
    EventLog(path).cut_after(10)
    assert len(list(read_events(path))) == 11
    assert list(tmp_path.iterdir()) == [path]


def test_training_goes_on_and_the_file_stays_readable_when_the_disk_is_full(tmp_path, capsys):
    path = tmp_path / "metrics.jsonl"
    log = written(path, step(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        # A size limit fails writes as a full disk does, the first one half way.
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, hard))
        log.append(step(2))
        log.append(step(3))
        log.append(step(4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    log.append(step(5))
    assert [event["step"] for event in read_events(path)] == [1, 5]
    message = capsys.readouterr().err
    assert message.count("cannot write") == 1
    assert "metrics.jsonl" in message


def test_a_mistake_is_named_when_the_directory_is_a_file(tmp_path):
    (tmp_path / "job").write_text("")
    with pytest.raises(ConfigurationMistake, match=r"cannot write .*metrics\.jsonl"):
        EventLog(tmp_path / "job" / "metrics.jsonl")
