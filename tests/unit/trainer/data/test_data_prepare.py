"""What `prepare` refuses, drops, counts and warns about."""

import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from ddpk8s.spec.training import Data, Model, Training
from ddpk8s_trainer.data.cache import TokenDataset, prepare
from ddpk8s_trainer.errors import DataMistake, ModelMistake


@pytest.fixture
def attempt(tmp_path):
    """Prepare data that have a mistake; return message and hint."""

    def wrong(training):
        with pytest.raises(DataMistake) as caught:
            prepare(training, tmp_path / "cache", print)
        return caught.value.message, caught.value.hint

    return wrong


@pytest.fixture
def path(write_jsonl, rows):
    return write_jsonl("train.jsonl", rows)


def test_too_long_samples_are_dropped_when_asked(tmp_path, path, training):
    everything = TokenDataset(prepare(training(path), tmp_path / "cache", print).train)
    prepared = prepare(training(path, too_long="drop", max_length=9), tmp_path / "cache", print)
    kept = TokenDataset(prepared.train)
    # The tokenizer is built for a maxLength, but its pieces are the same.
    fitting = everything.lengths <= 9
    assert 0 < fitting.sum() < len(everything)
    assert kept.lengths.tolist() == everything.lengths[fitting].tolist()
    assert kept.labels.tolist() == everything.labels[fitting].tolist()
    assert prepared.train_facts["dropped"] == (~fitting).sum()


def test_samples_without_any_token_are_dropped(tmp_path, write_jsonl):
    words = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"[PAD]": 0, "a": 1}, unk_token="a")), pad_token="[PAD]"
    )
    words.save_pretrained(tmp_path / "words")
    path = write_jsonl(
        "a.jsonl", [{"text": text, "label": i % 2} for i, text in enumerate(["a", "", "a", "a"])]
    )
    model = Model(config={"model_type": "bert"}, tokenizer=str(tmp_path / "words"))
    prepared = prepare(Training(model=model, data=Data(train=str(path))), tmp_path / "cache", print)
    assert prepared.tokenizer == str(tmp_path / "words")
    assert prepared.train_facts["dropped"] == 1
    assert TokenDataset(prepared.train).lengths.tolist() == [1, 1, 1]
    assert TokenDataset(prepared.train).labels.tolist() == [0, 0, 1]


def test_the_first_too_long_sample_is_named_when_it_is_an_error(path, training, attempt):
    message, hint = attempt(training(path, too_long="error", max_length=8))
    assert message.startswith(f"{path}:1: the text has ")
    assert message.endswith(
        " tokens, but spec.training.data.maxLength is 8 and spec.training.data.tooLong is error"
    )
    assert hint == "raise maxLength, or set tooLong to truncate or drop"


def test_all_samples_too_long_is_a_mistake(path, training, attempt):
    message, hint = attempt(training(path, too_long="drop", max_length=4))
    assert message.startswith(
        "spec.training.data.train: all 40 samples are longer than spec.training.data.maxLength 4; the shortest has "
    )
    assert hint == "raise maxLength, or set spec.training.data.tooLong to truncate"


def test_max_length_must_leave_room_for_two_texts(write_jsonl, training, attempt):
    path = write_jsonl("a.jsonl", [{"text": "a", "b": "b", "label": i % 2} for i in range(4)])
    assert attempt(training(path, text_pair_column="b", max_length=4)) == (
        "spec.training.data.maxLength 4 is all taken by 3 special tokens",
        "set it to 5 at least",
    )


def test_validation_labels_must_occur_in_training(tmp_path, path, training, attempt, write_jsonl):
    validation = write_jsonl(
        "validation.jsonl", [{"text": "a", "label": "positive"}, {"text": "b", "label": "mixed"}]
    )
    assert attempt(training(path, validation)) == (
        f"{validation}:2: label 'mixed' is not among those of the training data",
        "the labels are: negative, positive",
    )


def test_a_mistake_in_the_validation_file_shows_before_the_training_data_are_tokenized(
    tmp_path, path, training, attempt, write_jsonl
):
    validation = write_jsonl("validation.jsonl", [{"txt": "a", "label": "positive"}])
    assert attempt(training(path, validation))[0].startswith(f"{validation}:1: no column 'text'")
    assert not list((tmp_path / "cache").glob("tokens-*"))


def test_a_label_outside_the_given_ones_is_named_by_line(path, training, attempt, write_jsonl, rows):
    rows[17]["label"] = 2
    wrong = write_jsonl("wrong.jsonl", rows)
    message, _ = attempt(training(wrong, labels=["negative", "positive"]))
    assert (
        message == f"{wrong}:18: label '2' is outside 0..1, and spec.training.model.labels has no such name"
    )


def test_given_labels_keep_their_order(tmp_path, path, training):
    prepared = prepare(training(path, labels=["positive", "negative", "never"]), tmp_path / "cache", print)
    assert prepared.labels == ["positive", "negative", "never"]
    assert prepared.train_facts["label_counts"] == {"positive": 20, "negative": 20, "never": 0}
    assert TokenDataset(prepared.train).labels[:3].tolist() == [0, 1, 0]


def test_labels_given_twice_are_a_mistake(tmp_path, path, training):
    with pytest.raises(ModelMistake, match="has 'a' twice"):
        prepare(training(path, labels=["a", "a"]), tmp_path / "cache", print)


def test_texts_in_both_files_are_counted(tmp_path, path, training, write_jsonl, rows):
    new = {"text": "not seen before", "label": "positive"}
    shared = [{**rows[3], "text": f" {rows[3]['text']} "}, rows[4]]
    validation = write_jsonl("validation.jsonl", [*shared, new])
    assert prepare(training(path, validation), tmp_path / "cache", print).shared_texts == 2
    assert prepare(training(path, validation), tmp_path / "cache", print).shared_texts == 2


def test_pairs_are_shared_only_when_both_texts_are(tmp_path, training, write_jsonl):
    train = write_jsonl("train.jsonl", [{"text": "a", "b": str(i), "label": i % 2} for i in range(4)])
    validation = write_jsonl("validation.jsonl", [{"text": "a", "b": b, "label": 0} for b in ("3", "4")])
    prepared = prepare(training(train, validation, text_pair_column="b"), tmp_path / "cache", print)
    assert prepared.shared_texts == 1


def test_several_files_are_one_split(tmp_path, training, write_jsonl, rows):
    for part in range(4):
        write_jsonl(f"parts/{part}.jsonl", rows[part * 10 : part * 10 + 10])
    one = prepare(training(write_jsonl("whole.jsonl", rows)), tmp_path / "cache", print)
    several = prepare(training(tmp_path / "parts"), tmp_path / "cache", print)
    assert TokenDataset(one.train).tokens.tolist() == TokenDataset(several.train).tokens.tolist()


def test_a_finished_line_says_what_was_read(tmp_path, path, training):
    lines = []
    prepare(training(path, max_length=9), tmp_path / "cache", lines.append)
    assert lines.count("") == 2  # a sign of life for each chunk: read for the tokenizer, then tokenized
    lines = [line for line in lines if line]
    assert lines[0] == "building a bpe tokenizer of 200 tokens"
    assert lines[1] == "tokenizing train"
    assert lines[2].startswith("train: 40 samples, ")
    assert lines[2].endswith(" truncated")
