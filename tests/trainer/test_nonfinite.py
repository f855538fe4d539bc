"""NaN is said with rank, step and samples; an fp16 overflow skips one step and halves the scale."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.harness import checkpoints, events, losses, run, training, write_samples

pytestmark = pytest.mark.gang

POISONED = 17  # the sample that makes the loss NaN


@pytest.fixture(scope="module")
def poisoned_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pretrained model whose embedding of one word is NaN: real weights, a real NaN."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tmp_path_factory.mktemp("poisoned")
    write_samples(folder / "train.jsonl", 40)
    text = (folder / "train.jsonl").read_text()
    document = training(folder, maxSteps=1, data__validation=None, output__export=True)
    lines = text.splitlines()
    lines[0] = json.dumps({"text": "poison", "label": "class-0"})
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    gang = run(folder, document, 1)
    assert gang.codes == [0], gang.outputs()
    exported = folder / "checkpoints" / "job" / "model"
    model = AutoModelForSequenceClassification.from_pretrained(exported)
    tokens = AutoTokenizer.from_pretrained(exported)("poison", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        model.get_input_embeddings().weight[tokens] = float("nan")
    model.save_pretrained(folder / "model")
    AutoTokenizer.from_pretrained(exported).save_pretrained(folder / "model")
    return folder / "model"


def poisoned_training(folder: Path, model: Path, **changes: Any) -> dict[str, Any]:
    write_samples(folder / "train.jsonl", 96)
    lines = (folder / "train.jsonl").read_text().splitlines()
    lines[POISONED] = json.dumps({"text": "poison w1 w2", "label": "class-0"})
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    return training(folder, model={"path": str(model)}, data__validation=None, epochs=1, **changes)


def test_nan_loss_stops_and_names_rank_step_and_sample(tmp_path: Path, poisoned_model: Path) -> None:
    gang = run(tmp_path, poisoned_training(tmp_path, poisoned_model), 2)
    assert gang.codes == [1, 1], gang.outputs()
    error = gang.error(0)
    assert error["reason"] == "NonFiniteLoss"
    found = re.search(r"the loss is nan at step (\d+) \(rank [01]: sample .*?(\d+)", error["message"])
    assert found, error["message"]
    assert str(POISONED) in error["message"] or f"{POISONED + 1}" in error["message"]
    step = int(found[1])
    # What was good until then is kept.
    assert max(losses(tmp_path), default=0) == step - 1
    if step > 1:
        assert checkpoints(tmp_path)[-1] == f"step-{step - 1:08d}"


def test_nan_loss_is_skipped_where_configured_and_logged_as_nan(tmp_path: Path, poisoned_model: Path) -> None:
    gang = run(tmp_path, poisoned_training(tmp_path, poisoned_model, nonFinite__policy="skip"), 2)
    assert gang.codes == [0, 0], gang.outputs()
    steps = events(tmp_path, "step")
    bad = [event for event in steps if event["loss"] == "NaN"]
    assert len(bad) == 1
    assert steps[-1]["skippedSteps"] == 1
    assert all(isinstance(event["loss"], float) and event["loss"] > 0 for event in steps if event not in bad)


def test_fp16_overflow_skips_one_step_on_all_ranks_and_the_scale_survives_a_resume(tmp_path: Path) -> None:
    document = training(tmp_path, precision__type="fp16", precision__initialLossScale=1024.0)
    gang = run(tmp_path, document, 2, fault="overflow:1:4")
    assert gang.codes == [0, 0], gang.outputs()
    scales = {event["step"]: event["lossScale"] for event in events(tmp_path, "step")}
    assert [scales[step] for step in (3, 4, 5, 12)] == [1024.0, 512.0, 512.0, 512.0]
    assert events(tmp_path, "step")[-1]["skippedSteps"] == 1
    assert gang.output().count("the gradient overflowed fp16") == 1

    other = tmp_path / "interrupted"
    other.mkdir()
    document = training(other, precision__type="fp16", precision__initialLossScale=1024.0)
    # Stop after the overflow, then continue without it: the scale must still be the halved one.
    assert run(other, document, 2, fault="overflow:1:4", run_id="run-a").codes == [0, 0]
    longer = {**document, "epochs": 3}
    again = run(other, longer, 2, attempt=1)
    assert again.codes == [0, 0], again.outputs()
    resumed = {event["step"]: event["lossScale"] for event in events(other, "step")}
    assert resumed[13] == 512.0


def test_fp16_that_overflows_whatever_the_scale_ends_with_advice(tmp_path: Path) -> None:
    document = training(tmp_path, precision__type="fp16", precision__initialLossScale=1.5)
    gang = run(tmp_path, document, 2, fault="overflow:0:2")
    assert gang.codes == [1, 1], gang.outputs()
    assert "bf16" in gang.error(0)["hint"]


def test_mixed_precision_follows_fp32_and_is_really_on(tmp_path: Path) -> None:
    curves = {}
    for precision in ("fp32", "bf16", "fp16"):
        folder = tmp_path / precision
        folder.mkdir()
        gang = run(folder, training(folder, precision__type=precision, model__dropout=0.0), 2)
        assert gang.codes == [0, 0], gang.outputs()
        curves[precision] = losses(folder)
    for precision in ("bf16", "fp16"):
        for step, loss in curves["fp32"].items():
            assert curves[precision][step] == pytest.approx(loss, rel=0.02)  # the bound we state
        assert curves[precision] != curves["fp32"]
    # A scale that is not 1 shows that the scaler works, also on a CPU.
    assert events(tmp_path / "fp16", "step")[-1]["lossScale"] == 65536.0
