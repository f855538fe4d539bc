"""Figures of an evaluation against scikit-learn, and the same figure for any batch and world size."""

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

from ddpk8s_trainer.evaluate import summarize
from tests.trainer.harness import events, run, training


@pytest.mark.parametrize("seed", range(5))
def test_figures_equal_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    true, predicted = rng.integers(0, 4, 200), rng.integers(0, 3, 200)  # label 3 is never predicted
    table = confusion_matrix(true, predicted, labels=range(4))
    result = summarize(123.0, table)
    assert result.accuracy == pytest.approx(accuracy_score(true, predicted))
    assert result.f1 == pytest.approx(
        f1_score(true, predicted, labels=range(4), average="macro", zero_division=0)
    )
    assert result.loss == pytest.approx(123.0 / 200)
    assert result.samples == 200


def test_more_is_better_for_every_metric_and_nan_never_is() -> None:
    good, bad = summarize(1.0, np.array([[5, 0], [0, 5]])), summarize(9.0, np.array([[1, 4], [4, 1]]))
    for metric in ("accuracy", "f1", "loss"):
        assert good.is_better_than(bad.value(metric), metric)
        assert not bad.is_better_than(good.value(metric), metric)
    assert not summarize(math.nan, np.array([[5, 0], [0, 5]])).is_better_than(None, "loss")


@pytest.mark.gang
def test_evaluation_is_the_same_for_any_batch_and_world_size(tmp_path: Path) -> None:
    figures = []
    for number, (world_size, budget) in enumerate([(1, 4096), (1, 48), (2, 200), (3, 64)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        document = training(
            folder,
            evaluation={"everySteps": 1, "tokensPerDevice": budget},
            optimizer__learningRate=1e-12,
            maxSteps=1,
            model__dropout=0.0,
        )
        gang = run(folder, document, world_size)
        assert gang.codes == [0] * world_size, gang.outputs()
        figures.append(events(folder, "evaluation")[0])
    assert figures[0]["samples"] == 31  # an odd number: no rank's padding is counted
    for other in figures[1:]:
        assert other["confusion"] == figures[0]["confusion"]
        assert other["accuracy"] == figures[0]["accuracy"]
        assert other["loss"] == pytest.approx(figures[0]["loss"], rel=1e-6)
