import json
import math
import subprocess
import sys
import time

import pytest

from ddpk8s_trainer.metrics import MainRecorder, Recorder, RunFacts, StepFigures, open_recorder
from ddpk8s_trainer.metrics.events import read_events
from ddpk8s_trainer.metrics.timer import PARTS

RESULT = {"loss": 0.5, "accuracy": 0.75, "f1": 0.7, "confusion": [[3, 1], [1, 3]], "samples": 8}


def recorder_in(directory, attempt=0, run_id="one", tensorboard=False):
    return MainRecorder(RunFacts(directory, run_id, attempt, world_size=2, tensorboard=tensorboard))


def figures(step, loss=0.5, **more):
    return StepFigures(
        step, step / 100, loss, 1e-4, 1.5, samples=640, tokens=8000, padded_tokens=10000, **more
    )


def train(recorder, steps, resumed_step=None, rejected=()):
    recorder.start(100, resumed_step, rejected)
    for step in steps:
        recorder.timer.lap("forward")
        recorder.step(figures(step))
    return recorder


def events(directory, name="metrics"):
    return list(read_events(directory / f"{name}.jsonl"))


def test_a_step_has_the_keys_of_the_contract_when_recorded(tmp_path):
    recorder = recorder_in(tmp_path)
    recorder.phase("loading")
    recorder.start(100, None)
    time.sleep(0.1)
    recorder.timer.lap("forward")
    time.sleep(0.2)
    recorder.timer.lap("evaluation")
    recorder.step(figures(10, loss_scale=1024.0, skipped_steps=3))
    (event,) = events(tmp_path)
    assert set(event) >= {
        "event", "step", "epoch", "attempt", "time", "loss", "learningRate", "gradNorm", "samplesPerSecond",
        "tokensPerSecondPerDevice", "paddedTokensPerSecondPerDevice", "paddingShare", "peakMemoryBytes",
        "lossScale", "skippedSteps", "split",
    }  # fmt: skip
    assert list(event["split"]) == list(PARTS)
    # Rates are over the time of training: evaluation does not slow it down.
    seconds = sum(event["split"].values()) - event["split"]["evaluation"]
    assert event["samplesPerSecond"] == pytest.approx(640 / seconds, rel=1e-3)
    assert event["tokensPerSecondPerDevice"] == pytest.approx(8000 / seconds / 2, rel=1e-3)
    assert event["paddedTokensPerSecondPerDevice"] == pytest.approx(10000 / seconds / 2, rel=1e-3)
    assert event["paddingShare"] == pytest.approx(0.2)
    assert (event["lossScale"], event["skippedSteps"]) == (1024.0, 3)
    assert event["peakMemoryBytes"] > 1_000_000


def test_nan_is_recorded_when_the_loss_is_nan(tmp_path):
    recorder = recorder_in(tmp_path, tensorboard=True)
    recorder.start(100, None)
    recorder.step(figures(1, math.nan))
    recorder.close()
    assert '"loss": "NaN"' in (tmp_path / "metrics.jsonl").read_text()


def test_evaluation_checkpoint_and_end_are_recorded_when_called(tmp_path, capsys):
    recorder = recorder_in(tmp_path)
    recorder.start(100, None, [{"path": "step-00000007", "reason": "hash differs"}])
    recorder.evaluation(10, 0.5, RESULT, labels=["a", "b"], best=True)
    recorder.checkpoint(10, 1.5, 2048, best=True)
    recorder.end("finished", 10)
    recorder.end("Crashed", 10)
    recorder.close()
    recorder.close()
    evaluation, checkpoint = events(tmp_path)
    assert {key: evaluation[key] for key in RESULT} == RESULT
    assert (evaluation["labels"], evaluation["best"]) == (["a", "b"], True)
    assert (checkpoint["step"], checkpoint["seconds"], checkpoint["bytes"], checkpoint["best"]) == (
        10,
        1.5,
        2048,
        True,
    )
    start, end = events(tmp_path, "attempts")
    assert (start["runId"], start["worldSize"], start["resumedStep"]) == ("one", 2, None)
    assert start["rejected"] == [{"path": "step-00000007", "reason": "hash differs"}]
    assert (start["lostSteps"], start["lostSeconds"]) == (0, 0)
    assert (end["reason"], end["step"]) == ("finished", 10)
    assert '"phase": "finished"' in capsys.readouterr().out


def test_steps_are_cut_and_counted_as_lost_when_a_killed_run_resumes(tmp_path):
    train(recorder_in(tmp_path), [10, 20, 30, 40])
    killed = events(tmp_path)
    time.sleep(0.1)
    train(recorder_in(tmp_path, attempt=1), [30], resumed_step=20)
    assert [(event["attempt"], event["step"]) for event in events(tmp_path)] == [(0, 10), (0, 20), (1, 30)]
    start = events(tmp_path, "attempts")[-1]
    assert (start["resumedStep"], start["lostSteps"], start["lastStep"]) == (20, 20, 40)
    assert start["lostSeconds"] == pytest.approx(start["time"] - killed[1]["time"], abs=0.002)
    assert start["lastTime"] == killed[3]["time"]
    assert start["lostSince"] == killed[1]["time"]


def test_everything_since_the_start_is_lost_when_there_was_no_checkpoint(tmp_path):
    train(recorder_in(tmp_path), [10, 20])
    first = events(tmp_path, "attempts")[0]
    time.sleep(0.1)
    again = train(recorder_in(tmp_path, attempt=1), [10])
    start = events(tmp_path, "attempts")[-1]
    assert (start["lostSteps"], start["resumedStep"]) == (20, None)
    assert start["lostSeconds"] == pytest.approx(start["time"] - first["time"], abs=0.002)
    assert [event["step"] for event in events(tmp_path)] == [10]
    again.close()


def test_nothing_is_lost_when_a_stopped_run_continues_later(tmp_path):
    stopped = train(recorder_in(tmp_path), [10, 20])
    stopped.end("stopped", 23)
    time.sleep(0.1)
    train(recorder_in(tmp_path, attempt=1), [], resumed_step=23)
    start = events(tmp_path, "attempts")[-1]
    assert (start["lostSteps"], start["lostSeconds"], start["lostSince"]) == (0, 0.0, None)


def test_metrics_are_moved_away_and_nothing_is_lost_when_another_run_begins(tmp_path):
    train(recorder_in(tmp_path, run_id="one", tensorboard=True), [10, 20]).close()
    train(recorder_in(tmp_path, run_id="two", tensorboard=True), [10]).close()
    start = events(tmp_path, "attempts")[-1]
    assert (start["lostSteps"], start["lostSeconds"]) == (0, 0)
    assert len(events(tmp_path)) == 1
    assert len(events(tmp_path / "archive" / "one")) == 2
    assert len(list((tmp_path / "archive" / "one" / "tensorboard").iterdir())) == 1
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1


def test_metrics_stay_in_the_job_directory_when_the_run_id_is_hostile(tmp_path):
    job = tmp_path / "job"
    train(recorder_in(job, run_id="../../evil"), [10]).close()
    train(recorder_in(job, run_id="two"), [10]).close()
    assert list(tmp_path.iterdir()) == [job]
    assert len(events(job / "archive" / "_.._evil")) == 1


def test_an_attempt_that_fails_while_loading_leaves_word_and_cuts_nothing(tmp_path):
    train(recorder_in(tmp_path), [10, 20]).close()
    failed = recorder_in(tmp_path, attempt=1)
    failed.phase("loading")
    failed.end("DataMistake", 0)
    failed.close()
    assert [event["event"] for event in events(tmp_path, "attempts")] == ["start", "start", "end"]
    assert events(tmp_path, "attempts")[-1]["reason"] == "DataMistake"
    # When the attempt before was seen last: it was killed, and cannot say it itself.
    last = events(tmp_path)[-1]
    start = events(tmp_path, "attempts")[1]
    assert (start["lastStep"], start["lastTime"]) == (last["step"], last["time"]) == (20, last["time"])
    assert len(events(tmp_path)) == 2


def test_nothing_is_written_when_the_rank_is_not_zero(tmp_path, capsys):
    recorder = open_recorder(RunFacts(tmp_path, "one", 0, world_size=2), rank=1)
    assert type(recorder) is Recorder
    recorder.phase("loading")
    train(recorder, [10])
    recorder.beat()
    recorder.evaluation(10, 0.5, RESULT, labels=["a", "b"], best=True)
    recorder.checkpoint(10, 1.0, 5, best=False)
    recorder.end("finished", 10)
    recorder.close()
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == ""
    assert isinstance(open_recorder(RunFacts(tmp_path, "one", 0, world_size=2), rank=0), MainRecorder)


def test_every_line_survives_when_the_process_is_killed(tmp_path):
    code = """
import os, signal, sys
from pathlib import Path
from ddpk8s_trainer.metrics import RunFacts, StepFigures, open_recorder
recorder = open_recorder(RunFacts(Path(sys.argv[1]), "one", 0, world_size=1, tensorboard=False), rank=0)
recorder.start(100, None)
for step in range(1, 6):
    recorder.step(StepFigures(step, 0.1, 0.5, 1e-4, None, samples=1, tokens=1, padded_tokens=1))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -9
    assert [event["step"] for event in events(tmp_path)] == [1, 2, 3, 4, 5]
    assert json.loads(done.stdout.splitlines()[-1].partition(" ")[2])["total"] == 100
