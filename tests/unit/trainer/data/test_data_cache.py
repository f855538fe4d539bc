"""Tokenise once, keep it, and never use what is torn."""

import subprocess
import sys

import numpy as np
import pytest
from transformers import AutoTokenizer

from ddpk8s_trainer.data.cache import PreparedData, TokenDataset, prepare
from ddpk8s_trainer.data.store import is_whole, making
from ddpk8s_trainer.errors import DataMistake


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def files(write_jsonl, rows):
    return write_jsonl("train.jsonl", rows[:30]), write_jsonl("validation.jsonl", rows[30:])


def silent(line):
    """Drop what `prepare` reports."""


def snapshot(cache):
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in cache.rglob("*")}


def test_samples_are_what_the_tokenizer_makes_of_the_texts(files, training, cache, rows):
    prepared = prepare(training(*files, max_length=9), cache, silent)
    tokenizer = AutoTokenizer.from_pretrained(prepared.tokenizer)
    for directory, part in ((prepared.train, rows[:30]), (prepared.validation, rows[30:])):
        dataset = TokenDataset(directory)
        assert len(dataset) == len(part)
        expected = tokenizer([row["text"] for row in part], truncation=True, max_length=9)["input_ids"]
        assert [dataset.sample(i).tolist() for i in range(len(part))] == expected
        assert dataset.lengths.tolist() == [len(ids) for ids in expected]
        assert [prepared.labels[i] for i in dataset.labels] == [row["label"] for row in part]
    assert prepared.labels == ["negative", "positive"]
    assert prepared.pad_token_id == tokenizer.pad_token_id
    assert prepared.vocab_size == len(tokenizer)


def test_what_is_known_of_the_data_is_plain_json(files, training, cache):
    prepared = prepare(training(*files, max_length=9), cache, silent)
    assert PreparedData.from_json(prepared.to_json()) == prepared
    facts, lengths = prepared.train_facts, TokenDataset(prepared.train).lengths
    assert facts["samples"] == 30
    assert facts["tokens"] == lengths.sum()
    assert 0 < facts["truncated"] <= (lengths == 9).sum()
    assert facts["dropped"] == 0
    assert facts["length_mean"] == pytest.approx(lengths.mean(), abs=0.06)
    assert facts["length_max"] == 9
    assert facts["padding_to_max_length"] == pytest.approx(1 - lengths.mean() / 9, abs=1e-4)
    assert facts["label_counts"] == {"negative": 15, "positive": 15}
    assert prepared.validation_facts["samples"] == 10


def test_a_second_start_finds_everything(files, training, cache):
    lines = []
    first = prepare(training(*files), cache, lines.append)
    before = snapshot(cache)
    said = len(lines)
    second = prepare(training(*files), cache, lines.append)
    assert (first.cached, second.cached) == (False, True)
    assert len(lines) == said
    assert snapshot(cache) == before
    assert second.to_json().replace('"cached": true', '"cached": false') == first.to_json()


def test_another_setting_or_content_is_another_cache(files, training, cache, write_jsonl, rows):
    keys = {
        prepare(training(*files, **settings), cache, silent).train for settings in ({}, {"max_length": 20})
    }
    keys.add(prepare(training(*files, too_long="drop"), cache, silent).train)
    keys.add(prepare(training(*files, labels=["positive", "negative"]), cache, silent).train)
    write_jsonl("train.jsonl", rows[:29])
    keys.add(prepare(training(*files), cache, silent).train)
    assert len(keys) == 5


def test_a_copy_of_the_files_elsewhere_is_the_same_cache(files, training, cache, write_jsonl, rows):
    first = prepare(training(*files), cache, silent)
    copies = write_jsonl("else/train.jsonl", rows[:30]), write_jsonl("else/validation.jsonl", rows[30:])
    assert prepare(training(*copies), cache, silent).train == first.train


@pytest.mark.parametrize("name", ["tokens.bin", "labels.bin", "offsets.bin", "meta.json"])
@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_a_torn_cache_is_refused_and_made_again(files, training, cache, name, damage):
    prepared = prepare(training(*files), cache, silent)
    intact = TokenDataset(prepared.train)
    tokens, fingerprint = np.array(intact.tokens), intact.fingerprint
    torn = intact.directory / name
    content = torn.read_bytes()
    torn.unlink()
    if damage == "truncated":
        torn.write_bytes(content[:-3])
    with pytest.raises(DataMistake) as caught:
        TokenDataset(prepared.train)
    assert caught.value.message == f"the token cache {prepared.train} is missing or torn"
    again = prepare(training(*files), cache, silent)
    assert (again.cached, again.train) == (False, prepared.train)
    dataset = TokenDataset(again.train)
    assert dataset.tokens.tolist() == tokens.tolist()
    assert dataset.fingerprint == fingerprint
    assert not list(cache.glob(".partial-*"))


def test_a_directory_half_made_is_never_seen(tmp_path):
    def break_off():
        with making(tmp_path / "c" / "tokens-1") as partial:
            (partial / "tokens.bin").write_bytes(b"x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()
    assert list((tmp_path / "c").iterdir()) == []


def test_the_first_of_two_makers_wins(tmp_path):
    target = tmp_path / "tokens-1"
    with making(target) as slow:
        (slow / "a.bin").write_bytes(b"slow")
        with making(target) as fast:
            (fast / "a.bin").write_bytes(b"fast")
    assert (target / "a.bin").read_bytes() == b"fast"
    assert is_whole(target)
    assert [path.name for path in tmp_path.iterdir()] == ["tokens-1"]


RACE = """
import pathlib, sys
from ddpk8s_trainer.data.store import is_whole, making
for number in range(40):
    target = pathlib.Path(sys.argv[1]) / f"tokens-{number}"
    if not is_whole(target):
        with making(target) as partial:
            (partial / "tokens.bin").write_bytes(bytes(100_000 + number))
    assert is_whole(target), target
"""


def test_processes_that_race_end_with_whole_directories_also_over_torn_ones(cache):
    for number in range(0, 40, 2):
        (cache / f"tokens-{number}").mkdir(parents=True)
        (cache / f"tokens-{number}" / "tokens.bin").write_bytes(b"torn")
    racing = [subprocess.Popen([sys.executable, "-c", RACE, str(cache)]) for _ in range(3)]
    assert [process.wait(120) for process in racing] == [0, 0, 0]
    sizes = {path.name: (path / "tokens.bin").stat().st_size for path in cache.iterdir()}
    assert sizes == {f"tokens-{number}": 100_000 + number for number in range(40)}


def test_a_cache_that_cannot_be_written_is_a_mistake(files, training, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataMistake) as caught:
        prepare(training(*files), tmp_path / "file" / "cache", silent)
    assert caught.value.message == (
        f"the token cache {tmp_path / 'file' / 'cache'} cannot be written: Not a directory"
    )
    assert caught.value.hint == "set spec.training.data.cacheDirectory to a writable directory with room"
