"""A user's mistakes end with exit code 78 and one clear message; nobody hangs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.harness import run, training, write_samples

pytestmark = pytest.mark.gang


def missing_file(folder: Path) -> tuple[dict[str, Any], str]:
    return training(folder, data__train=str(folder / "trian.jsonl")), "trian.jsonl"


def wrong_column(folder: Path) -> tuple[dict[str, Any], str]:
    return training(folder, data__labelColumn="labels"), "labels"


def label_outside_range(folder: Path) -> tuple[dict[str, Any], str]:
    document = training(folder, model__labels=["class-0", "class-1"])
    return document, "class-2"


def empty_dataset(folder: Path) -> tuple[dict[str, Any], str]:
    (folder / "empty.jsonl").write_text("")
    return training(folder, data__train=str(folder / "empty.jsonl")), "empty.jsonl"


def all_too_long(folder: Path) -> tuple[dict[str, Any], str]:
    return training(folder, data__maxLength=4, data__tooLong="drop"), "maxLength"


def not_utf8(folder: Path) -> tuple[dict[str, Any], str]:
    (folder / "latin.jsonl").write_bytes(
        json.dumps({"text": "caf"}).encode()[:-2] + b'\xe9", "label": "a"}\n'
    )
    return training(folder, data__train=str(folder / "latin.jsonl")), "UTF-8"


def missing_pad_token(folder: Path) -> tuple[dict[str, Any], str]:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "w1": 1}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(
        folder / "tokenizer"
    )
    return training(
        folder, model__tokenizer=str(folder / "tokenizer"), model__buildTokenizer=None
    ), "padding token"


def vocabulary_mismatch(folder: Path) -> tuple[dict[str, Any], str]:
    document = training(folder)
    document["model"]["config"]["vocab_size"] = 10
    return document, "embeddings for 10"


def checkpoint_directory_is_a_file(folder: Path) -> tuple[dict[str, Any], str]:
    (folder / "file").write_text("")
    return training(
        folder, checkpoint__directory=str(folder / "file"), data__cacheDirectory=str(folder / "c")
    ), "file"


def more_processes_than_samples(folder: Path) -> tuple[dict[str, Any], str]:
    write_samples(folder / "one.jsonl", 1)
    document = training(folder, data__train=str(folder / "one.jsonl"), data__validation=None)
    document["model"]["labels"] = ["class-0", "class-1", "class-2"]
    return document, "2 processes"


def unknown_model_type(folder: Path) -> tuple[dict[str, Any], str]:
    document = training(folder)
    document["model"]["config"]["model_type"] = "brt"
    return document, "did you mean"


def unknown_configuration_key(folder: Path) -> tuple[dict[str, Any], str]:
    document = training(folder)
    document["model"]["config"]["num_layers"] = 3
    return document, "num_layers"


def heads_do_not_divide(folder: Path) -> tuple[dict[str, Any], str]:
    document = training(folder)
    document["model"]["config"]["num_attention_heads"] = 3
    return document, "hidden size"


def missing_model_directory(folder: Path) -> tuple[dict[str, Any], str]:
    return training(folder, model={"path": str(folder / "nothing")}), "is no directory"


def too_few_positions(folder: Path) -> tuple[dict[str, Any], str]:
    return training(folder, data__maxLength=128), "64"


def warmup_longer_than_training(folder: Path) -> tuple[dict[str, Any], str]:
    return training(folder, schedule__warmupSteps=500), "500 steps"


MISTAKES = [
    missing_file, wrong_column, label_outside_range, empty_dataset, all_too_long, not_utf8, missing_pad_token,
    vocabulary_mismatch, checkpoint_directory_is_a_file, more_processes_than_samples, unknown_model_type,
    unknown_configuration_key, heads_do_not_divide, missing_model_directory, too_few_positions,
    warmup_longer_than_training,
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.__name__)
def test_mistake_ends_with_78_and_one_message(tmp_path: Path, mistake: Any) -> None:
    document, expected = mistake(tmp_path)
    gang = run(tmp_path, document, 2)
    assert gang.codes == [78, 78], gang.outputs()
    assert "Traceback" not in gang.outputs()
    messages = {json.loads(path.read_text())["message"] for path in gang.status.glob("rank-*.error.json")}
    assert len(messages) == 1, messages
    assert expected.lower() in messages.pop().lower() + (gang.error(0)["hint"] or "").lower()
    assert gang.error(0)["exitCode"] == 78


def test_continuing_with_other_data_is_refused(tmp_path: Path) -> None:
    assert run(tmp_path, training(tmp_path, maxSteps=3), 1).codes == [0]
    write_samples(tmp_path / "train.jsonl", 80, seed=9)
    gang = run(tmp_path, training(tmp_path), 1, attempt=1)
    assert gang.codes == [78], gang.outputs()
    assert "other training data" in gang.error(0)["message"]
