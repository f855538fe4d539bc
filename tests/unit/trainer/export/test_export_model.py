import json
import os
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from ddpk8s_trainer.errors import TrainingFailed
from ddpk8s_trainer.export import export_model, parameters_digest
from ddpk8s_trainer.export.expected import Expected
from ddpk8s_trainer.export.verify import verify
from ddpk8s_trainer.export.write import EXPECTED_FILE, check, clean_environment, write


@pytest.fixture
def written(trained, tokenizer, labels, samples, tmp_path):
    """A directory as the check finds it."""
    model, initial = trained
    partial = tmp_path / ".partial-model"
    write(partial, model, tokenizer, labels, samples, initial)
    return partial


def edit_json(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_the_model_takes_its_place_when_it_reads_the_same(
    trained, tokenizer, labels, samples, tmp_path, monkeypatch
):
    # As a worker of torchrun sees it; taken over, they would make the check wait for a gang.
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    for directory in ("model", ".partial-model"):  # an older model, and what a killed export left
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "stale.bin").write_text("old")
    model, initial = trained
    result = export_model(model, tokenizer, labels, tmp_path / "model", samples, initial)
    assert result.samples == 20
    assert result.max_difference <= result.tolerance
    assert result.digest == parameters_digest(model) != initial
    assert model.training
    assert list(tmp_path.iterdir()) == [result.directory]
    files = {path.name for path in result.directory.iterdir()}
    assert files >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert not files & {EXPECTED_FILE, "stale.bin"}
    assert result.size == sum(path.stat().st_size for path in result.directory.iterdir())
    again = AutoModelForSequenceClassification.from_pretrained(result.directory)
    assert [again.config.id2label[i] for i in range(3)] == labels
    assert again.config.label2id == {label: i for i, label in enumerate(labels)}
    inputs = AutoTokenizer.from_pretrained(result.directory)("服务 good", return_tensors="pt")
    with torch.no_grad():
        assert torch.allclose(again(**inputs).logits, model.eval()(**inputs).logits, atol=1e-6)


def test_the_older_model_stays_when_nothing_was_learned(trained, tokenizer, labels, samples, tmp_path):
    model, _ = trained
    old = tmp_path / "model"
    old.mkdir()
    (old / "keep.bin").write_text("old")
    with pytest.raises(TrainingFailed, match="those from before the training"):
        export_model(model, tokenizer, labels, old, samples, parameters_digest(model))
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["model", "model/keep.bin"]


def tamper_weight(directory):
    tensors = load_file(directory / "model.safetensors")
    tensors["classifier.bias"][1] += 1e-3
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def drop_weight(directory):
    tensors = load_file(directory / "model.safetensors")
    del tensors["classifier.bias"]
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def truncate(directory):
    os.truncate(directory / "model.safetensors", 2000)


def swap_labels(directory):
    edit_json(directory / "config.json", id2label={"0": "neutral", "1": "差评", "2": "<b>good</b>"})


def other_tokens(directory):
    path = directory / "tokenizer.json"
    path.write_text(path.read_text().replace('"good"', '"goood"'))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (tamper_weight, r"logits differ by up to 0\.001 .*over 20 samples \(allowed: 1\.?\d*e-05\)"),
        (drop_weight, "missing keys: classifier.bias"),
        (truncate, "it does not load"),
        (swap_labels, "its labels are"),
        (other_tokens, "its tokenizer makes"),
    ],
)
def test_the_export_is_refused_when_what_was_written_is_not_the_model(written, spoil, said):
    spoil(written)
    # The very code of the fresh process, which takes many seconds to start.
    verdict = verify(written, Expected.load(written / EXPECTED_FILE))
    assert re.search(said, "; ".join(verdict.problems))


def test_the_verdict_is_good_when_nothing_was_spoiled(written):
    verdict = verify(written, Expected.load(written / EXPECTED_FILE))
    assert verdict.problems == []
    assert verdict.max_difference <= verdict.tolerance < 1e-4


def test_the_last_words_are_shown_when_the_check_dies(written):
    (written / EXPECTED_FILE).write_bytes(b"not an archive")
    with pytest.raises(TrainingFailed, match=r"(?s)died \(exit code 1\).*Error"):
        check(written)


def test_a_clear_failure_when_there_are_no_samples(trained, tokenizer, labels, tmp_path):
    model, initial = trained
    with pytest.raises(TrainingFailed, match="no samples"):
        export_model(model, tokenizer, labels, tmp_path / "model", [], initial)


def test_a_clear_failure_when_the_directory_cannot_be_made(trained, tokenizer, labels, samples, tmp_path):
    model, initial = trained
    (tmp_path / "job").write_text("a file")
    with pytest.raises(TrainingFailed, match="cannot write the model to"):
        export_model(model, tokenizer, labels, tmp_path / "job" / "model", samples, initial)


def test_the_gang_is_unknown_to_the_check_when_torchrun_started_us(monkeypatch):
    for name in ("RANK", "GROUP_RANK", "TORCHELASTIC_RUN_ID", "DDPK8S_STATUS_DIR", "HF_HOME"):
        monkeypatch.setenv(name, "0")
    names = set(clean_environment())
    assert not names & {"RANK", "GROUP_RANK", "TORCHELASTIC_RUN_ID", "DDPK8S_STATUS_DIR"}
    assert {"HF_HOME", "PATH"} <= names
