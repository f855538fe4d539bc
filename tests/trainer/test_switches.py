"""Switches that must not change what is learned."""

from pathlib import Path
from typing import Any

import pytest

from tests.trainer.harness import events, losses, run, training

pytestmark = pytest.mark.gang


def curve(folder: Path, **changes: Any) -> dict[int, float]:
    """Return the losses of a short training without dropout."""
    folder.mkdir()
    gang = run(folder, training(folder, model__dropout=0.0, maxSteps=6, **changes), 2)
    assert gang.codes == [0, 0], gang.outputs()
    return losses(folder)


def test_gradient_checkpointing_and_compile_give_the_same_curve(tmp_path: Path) -> None:
    plain = curve(tmp_path / "plain")
    assert curve(tmp_path / "checkpointing", gradientCheckpointing=True) == pytest.approx(plain, rel=1e-5)
    assert curve(tmp_path / "compiled", compile=True) == pytest.approx(plain, rel=1e-4)


def test_synchronous_saves_give_the_very_same_curve(tmp_path: Path) -> None:
    assert curve(tmp_path / "synchronous", checkpoint__asynchronous=False) == curve(tmp_path / "plain")


def test_f1_picks_the_best_model_and_only_the_best_and_newest_checkpoints_stay(tmp_path: Path) -> None:
    document = training(tmp_path, evaluation={"everySteps": 2, "metric": "f1"}, checkpoint__keep=1, epochs=2)
    gang = run(tmp_path, document, 2)
    assert gang.codes == [0, 0], gang.outputs()
    evaluations = events(tmp_path, "evaluation")
    best = max(evaluations, key=lambda event: (event["f1"], -event["step"]))["step"]
    assert [event["step"] for event in evaluations if event["best"]][-1] == best
    left = sorted(path.name for path in (tmp_path / "checkpoints" / "job").glob("step-*"))
    assert left == sorted({f"step-{best:08d}", "step-00000012"})
