import math
import os

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ddpk8s_trainer.metrics import StepFigures
from ddpk8s_trainer.metrics.tensorboard import TensorBoardWriter


def write_steps(directory, resumed_step, steps, loss):
    writer = TensorBoardWriter(directory, resumed_step)
    for step in steps:
        figures = StepFigures(step, step / 10, loss, 1e-4, 1.0, samples=64, tokens=800, padded_tokens=1000)
        writer.step(figures, figures.rates(2.0, 2), 1000, {"data": 0.5, "forward": 1.5})
    return writer


def read(directory):
    accumulator = EventAccumulator(str(directory), size_guidance={"scalars": 0})
    accumulator.Reload()
    return accumulator


def series(directory, tag):
    return [(event.step, event.value) for event in read(directory).Scalars(tag)]


def test_scalars_are_named_by_group_when_written(tmp_path):
    writer = write_steps(tmp_path, None, [10], 0.5)
    writer.evaluation(10, {"loss": 0.4, "accuracy": 0.75, "f1": 0.5})
    writer.close()
    assert set(read(tmp_path).Tags()["scalars"]) == {
        "train/loss",
        "train/learning_rate",
        "train/grad_norm",
        "train/epoch",
        "train/skipped_steps",
        "throughput/samples_per_second",
        "throughput/tokens_per_second_per_device",
        "throughput/padded_tokens_per_second_per_device",
        "throughput/padding_share",
        "memory/peak_bytes",
        "time/data_share",
        "time/forward_share",
        "evaluation/loss",
        "evaluation/accuracy",
        "evaluation/f1",
    }
    assert series(tmp_path, "throughput/padding_share") == [(10, pytest.approx(0.2))]
    assert series(tmp_path, "time/data_share") == [(10, 0.25)]
    assert series(tmp_path, "evaluation/accuracy") == [(10, 0.75)]


def test_no_step_is_shown_twice_when_resumed(tmp_path):
    write_steps(tmp_path, None, range(1, 21), 1.0).close()
    write_steps(tmp_path, 12, range(13, 16), 2.0).close()
    write_steps(tmp_path, 14, range(15, 19), 3.0).close()
    expected = [(step, 1.0) for step in range(1, 13)] + [(13, 2.0), (14, 2.0)]
    assert series(tmp_path, "train/loss") == expected + [(step, 3.0) for step in range(15, 19)]


def test_all_earlier_steps_are_hidden_when_started_again_from_nothing(tmp_path):
    write_steps(tmp_path, None, range(1, 9), 1.0).close()
    write_steps(tmp_path, None, range(1, 4), 2.0).close()
    assert series(tmp_path, "train/loss") == [(1, 2.0), (2, 2.0), (3, 2.0)]


@pytest.mark.parametrize("missing_bytes", [1, 40])
def test_later_attempts_are_read_when_an_event_file_is_torn(tmp_path, missing_bytes):
    write_steps(tmp_path, None, range(1, 9), 1.0).close()
    (torn,) = tmp_path.iterdir()
    os.truncate(torn, torn.stat().st_size - missing_bytes)
    write_steps(tmp_path, 6, range(7, 10), 2.0).close()
    assert series(tmp_path, "train/loss") == [(s, 1.0) for s in range(1, 7)] + [
        (s, 2.0) for s in range(7, 10)
    ]


def test_nan_is_shown_as_nan_when_the_loss_is_nan(tmp_path):
    write_steps(tmp_path, None, [1], math.nan).close()
    ((step, value),) = series(tmp_path, "train/loss")
    assert step == 1
    assert math.isnan(value)
