"""Micro-batches as tensors."""

import numpy as np
import pytest
import torch

from ddpk8s_trainer.data.cache import TokenDataset, prepare
from ddpk8s_trainer.data.collate import collate

PAD = 99


@pytest.fixture
def dataset(tmp_path, write_jsonl, rows, training):
    prepared = prepare(training(write_jsonl("a.jsonl", rows)), tmp_path / "cache", print)
    return TokenDataset(prepared.train)


def test_samples_are_padded_to_the_longest_of_them(dataset):
    ids = np.array([7, 0, 39, 7])
    batch = collate(dataset, ids, PAD, None, "cpu")
    width = max(len(dataset.sample(i)) for i in ids)
    assert set(batch) == {"input_ids", "attention_mask", "labels"}
    assert {values.dtype for values in batch.values()} == {torch.int64}
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (4, width)
    for row, sample in enumerate(ids):
        tokens = dataset.sample(sample).tolist()
        rest = width - len(tokens)
        assert batch["input_ids"][row].tolist() == tokens + [PAD] * rest
        assert batch["attention_mask"][row].tolist() == [1] * len(tokens) + [0] * rest
        assert batch["labels"][row] == dataset.labels[sample]


def test_samples_are_padded_to_a_given_length(dataset):
    batch = collate(dataset, np.arange(5), PAD, 32, "cpu")
    assert batch["input_ids"].shape == (5, 32)
    assert batch["attention_mask"].sum(1).tolist() == dataset.lengths[:5].tolist()


def test_no_samples_give_empty_tensors(dataset):
    batch = collate(dataset, np.zeros(0, np.int64), PAD, None, "cpu")
    assert batch["input_ids"].shape == (0, 1)
    assert batch["labels"].shape == (0,)
    assert collate(dataset, np.zeros(0, np.int64), PAD, 32, "cpu")["input_ids"].shape == (0, 32)


def test_pairs_have_token_types(tmp_path, write_jsonl, training):
    rows = [{"text": f"问题 {i}", "b": "答" * (i % 5 + 1), "label": i % 2} for i in range(20)]
    settings = training(write_jsonl("a.jsonl", rows), text_pair_column="b")
    dataset = TokenDataset(prepare(settings, tmp_path / "cache", print).train)
    batch = collate(dataset, np.arange(20), PAD, None, "cpu")
    types, mask = batch["token_type_ids"], batch["attention_mask"]
    separators = (batch["input_ids"] == 3).int()
    assert separators.sum(1).tolist() == [2] * 20
    # A token belongs to the second text when a separator came before it.
    second = (separators.cumsum(1) - separators > 0).int() * mask
    assert types.tolist() == second.tolist()
    assert types.sum() > 20
