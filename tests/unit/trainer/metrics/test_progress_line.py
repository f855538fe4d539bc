import io
import json
import math
import os
import sys

import pytest

from ddpk8s_trainer.errors import ConfigurationMistake
from ddpk8s_trainer.metrics import StepFigures
from ddpk8s_trainer.metrics.progress import PREFIX, ProgressLine, RemainingTime

KEYS = {
    "attempt", "step", "total", "epoch", "loss", "learningRate", "samplesPerSecond",
    "tokensPerSecondPerDevice", "peakMemoryBytes", "etaSeconds", "phase",
}  # fmt: skip


def figures(step, loss=0.5):
    return StepFigures(step, step / 100, loss, 1e-4, 1.0, samples=64, tokens=1000, padded_tokens=1250)


@pytest.fixture
def interval(monkeypatch):
    return lambda seconds: monkeypatch.setenv("DDPK8S_PROGRESS_SECONDS", str(seconds))


def lines(stream):
    text = stream.getvalue().splitlines()
    assert all(line.startswith(PREFIX) for line in text)
    return [json.loads(line.removeprefix(PREFIX)) for line in text]


def take_step(line, number, loss=0.5):
    line.remaining.update(number, 2.0, 0.0)
    line.step(figures(number, loss), figures(number).rates(2.0, 2), 123)


def test_the_line_has_the_keys_of_the_contract_when_steps_are_done(interval):
    interval(0)
    stream = io.StringIO()
    line = ProgressLine(attempt=1, stream=stream)
    line.phase("loading")
    line.start(0, 100)
    line.phase("training")
    take_step(line, 10)
    first, _, last = lines(stream)
    assert set(first) == KEYS
    assert first["loss"] is None
    assert set(last) == KEYS
    assert (last["attempt"], last["step"], last["total"], last["phase"]) == (1, 10, 100, "training")
    assert (last["samplesPerSecond"], last["tokensPerSecondPerDevice"]) == (32.0, 250.0)
    assert (last["peakMemoryBytes"], last["etaSeconds"]) == (123, 18.0)


def test_steps_are_held_back_and_phases_are_not_when_the_interval_is_long(interval):
    interval(3600)
    stream = io.StringIO()
    line = ProgressLine(attempt=0, stream=stream)
    line.phase("loading")
    line.start(0, 100)
    line.phase("training")
    for number in range(1, 50):
        take_step(line, number)
        line.phase("training")
        line.beat()
    line.phase("evaluating")
    line.phase("training")
    line.phase("finished")
    printed = lines(stream)
    assert [item["phase"] for item in printed] == [
        "loading",
        "training",
        "evaluating",
        "training",
        "finished",
    ]
    assert [item["step"] for item in printed] == [0, 0, 49, 49, 49]
    assert printed[-1]["etaSeconds"] == 0


def test_nan_is_said_when_the_loss_is_nan(interval):
    interval(0)
    stream = io.StringIO()
    line = ProgressLine(attempt=0, stream=stream)
    take_step(line, 1, math.nan)
    assert lines(stream)[-1]["loss"] == "NaN"


def test_an_evaluation_stays_on_the_line_when_steps_follow(interval):
    interval(0)
    stream = io.StringIO()
    line = ProgressLine(attempt=0, stream=stream)
    line.evaluation(5, {"loss": 0.4, "accuracy": 0.8, "f1": 0.7})
    take_step(line, 6)
    assert lines(stream)[-1]["evaluation"] == {"step": 5, "loss": 0.4, "accuracy": 0.8, "f1": 0.7}


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", ""])
def test_a_mistake_is_named_when_the_interval_is_no_number(interval, text):
    interval(text)
    with pytest.raises(ConfigurationMistake, match="DDPK8S_PROGRESS_SECONDS is"):
        ProgressLine(attempt=0)


def test_training_goes_on_when_nobody_reads(interval):
    interval(0)
    read, write = os.pipe()
    stream = os.fdopen(write, "w")
    os.close(read)
    line = ProgressLine(attempt=0, stream=stream)
    line.phase("loading")
    line.phase("training")
    take_step(line, 1)


def test_the_line_goes_to_standard_output_when_no_stream_is_given(interval, capsys):
    interval(0)
    ProgressLine(attempt=0).phase("loading")
    assert capsys.readouterr().out.startswith(PREFIX)
    assert sys.stdout is not None


def test_remaining_time_follows_a_change_when_steps_become_slower():
    remaining = RemainingTime()
    remaining.begin(0)
    assert remaining.seconds(1000) is None
    for step in range(10, 110, 10):
        remaining.update(step, 10.0, 0.0)
    assert remaining.seconds(1000) == pytest.approx(900.0)
    for step in range(110, 210, 10):
        remaining.update(step, 40.0, 0.0)
    assert 0.9 * 800 * 4 < remaining.seconds(1000) <= 800 * 4


def test_remaining_time_counts_pauses_when_there_are_evaluations():
    remaining = RemainingTime()
    remaining.begin(100)
    remaining.update(110, 10.0, 5.0)
    assert remaining.seconds(200) == pytest.approx(90 * 1.5)
    assert remaining.seconds(50) == 0
