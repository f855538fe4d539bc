"""From labels as they stand in files to ids."""

from pathlib import Path

import numpy as np
import pytest

from ddpk8s_trainer.data.chunk import Chunk
from ddpk8s_trainer.data.labels import Labels
from ddpk8s_trainer.errors import DataMistake, ModelMistake

FILE = Path("a.jsonl")
BOTH = ["negative", "positive"]


def chunk(values):
    return Chunk(FILE, "line", range(1, len(values) + 1), {"label": values})


def learn(*chunks):
    labels = Labels(None)
    codes = [labels.encode(chunk(values), values) for values in chunks]
    names, ids = labels.finish(np.concatenate(codes), "spec.training.data.train")
    return names, ids.tolist()


def fault(values, names=None, origin="spec.training.model.labels"):
    with pytest.raises(DataMistake) as caught:
        Labels(names, origin).encode(chunk(values), values)
    return caught.value.message, caught.value.hint


@pytest.mark.parametrize(
    ("chunks", "names", "ids"),
    [
        ([["b", "a"], ["c", "a"]], ["a", "b", "c"], [1, 0, 2, 0]),
        ([[10, 9], [2]], ["2", "9", "10"], [2, 1, 0]),
        ([["10", "9", "-1"]], ["-1", "9", "10"], [2, 1, 0]),
        ([["10", "9", "x"]], ["10", "9", "x"], [0, 1, 2]),
        ([[True, False]], ["false", "true"], [1, 0]),
        ([[1.0, 0.0, 1]], ["0", "1"], [1, 0, 1]),
        ([[" good ", "bad", "good"]], ["bad", "good"], [1, 0, 1]),
    ],
)
def test_names_are_learned_and_sorted(chunks, names, ids):
    assert learn(*chunks) == (names, ids)


def test_given_names_keep_their_order_and_are_indexed_by_numbers():
    labels = Labels(["positive", "negative"])
    values = ["negative", 0, 1, "1", "positive", False, 1.0]
    codes = labels.encode(chunk(values), values)
    assert codes.tolist() == [1, 0, 1, 1, 0, 0, 1]
    names, ids = labels.finish(codes, "x")
    assert names == ["positive", "negative"]
    assert ids.tolist() == codes.tolist()


def test_a_number_that_is_a_name_is_that_name():
    assert Labels(["1", "2"]).encode(chunk([1, 2, "1"]), [1, 2, "1"]).tolist() == [0, 1, 0]


@pytest.mark.parametrize("value", [2, -1, "2", 7.0])
def test_a_number_outside_the_range_is_a_mistake(value):
    message, hint = fault([0, value], BOTH)
    number = str(int(value))
    assert message == (
        f"a.jsonl:2: label '{number}' is outside 0..1, and spec.training.model.labels has no such name"
    )
    assert hint == "the labels are: negative, positive"


def test_an_unknown_name_is_a_mistake_with_a_guess():
    assert fault(["postive"], BOTH) == (
        "a.jsonl:1: label 'postive' is not among those of spec.training.model.labels",
        "did you mean 'positive'? the labels are: negative, positive",
    )


def test_a_number_is_no_id_when_the_names_were_learned():
    message, _ = fault([1], BOTH, "the training data")
    assert message == "a.jsonl:1: label '1' is not among those of the training data"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (float("nan"), "null"),
        ("  ", "blank"),
        (0.5, "0.5, not a whole number"),
        (["a"], "a list"),
        (float("inf"), "inf, not a whole number"),
    ],
)
def test_what_is_no_label_is_a_mistake(value, kind):
    message, hint = fault(["a", value])
    assert message == f"a.jsonl:2: the label is {kind}"
    assert hint == "a label is a name, a whole number or a boolean; leave samples without one out"


def test_one_label_only_is_a_mistake():
    with pytest.raises(DataMistake) as caught:
        learn(["a", "a"], ["a"])
    assert caught.value.message == (
        "spec.training.data.train has only one label, 'a', in 3 samples; nothing is to learn"
    )


def test_a_label_for_nearly_each_sample_is_a_mistake():
    with pytest.raises(DataMistake, match=r"has 1500 labels in 2000 samples; this is no classification"):
        learn([str(i % 1500) for i in range(2000)])


def test_given_names_must_be_two_or_more_and_different():
    with pytest.raises(ModelMistake, match=r"^spec\.training\.model\.labels has 'a' twice"):
        Labels(["a", "b", "a"])
    with pytest.raises(ModelMistake, match=r"has 1 label, but classification needs two"):
        Labels(["a"])
