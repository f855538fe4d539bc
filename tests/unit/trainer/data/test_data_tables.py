"""Parquet files and Hugging Face dataset directories."""

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from ddpk8s.spec.training import Data
from ddpk8s_trainer.data.sources import find_source
from ddpk8s_trainer.errors import DataMistake


def write_parquet(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=3)


def test_parquet_is_read_over_row_groups(tmp_path, read):
    path = tmp_path / "a.parquet"
    write_parquet(path, text=[f"好{i}" for i in range(8)], label=list(range(8)), other=[0.5] * 8)
    found = read(path)
    assert found["texts"] == [f"好{i}" for i in range(8)]
    assert found["labels"] == list(range(8))
    assert found["places"][4] == f"{path}, row 5"


def test_parquet_with_more_rows_than_a_chunk_numbers_them_on(tmp_path, read):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["x"] * 5000, "label": [1] * 5000}), path)
    places = read(path)["places"]
    assert (len(places), places[-1]) == (5000, f"{path}, row 5000")


def test_dictionary_encoded_columns_become_texts(tmp_path, read):
    path = tmp_path / "a.parquet"
    write_parquet(path, text=["a", "b"], label=pyarrow.array(["x", "y"]).dictionary_encode())
    assert read(path)["labels"] == ["x", "y"]


def test_a_null_in_parquet_is_named_by_row(tmp_path, mistake):
    path = tmp_path / "a.parquet"
    write_parquet(path, text=["a", "b", None], label=[1, 2, 3])
    assert mistake(path)[0] == f"{path}, row 3: 'text' is null"


def test_a_number_column_as_text_is_a_mistake(tmp_path, mistake):
    path = tmp_path / "a.parquet"
    write_parquet(path, text=[1, 2], label=[1, 2])
    assert mistake(path)[0] == f"{path}, row 1: 'text' is the number 1, not a text"


def test_a_wrong_column_in_parquet_lists_those_present(tmp_path, mistake):
    path = tmp_path / "a.parquet"
    write_parquet(path, texts=["a"], label=[1])
    assert mistake(path) == (
        f"{path}: no column 'text', which spec.training.data.textColumn names; the columns are: texts, label",
        "did you mean 'texts'?",
    )


def test_a_file_that_is_no_parquet_is_a_mistake(tmp_path, mistake):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"text,label\na,1\n")
    assert mistake(path)[0].startswith(f"{path}: spec.training.data.train is no readable Parquet file: ")


def test_a_parquet_file_without_rows_is_empty(tmp_path, mistake):
    path = tmp_path / "a.parquet"
    write_parquet(path, text=pyarrow.array([], pyarrow.string()), label=pyarrow.array([], pyarrow.int64()))
    assert mistake(path)[0] == f"spec.training.data.train has no samples: {path} is empty"


@pytest.fixture
def dataset():
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    return datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [1, 0, 1]}, features=features)


def test_a_dataset_directory_gives_the_names_of_its_classes(tmp_path, read, dataset):
    dataset.save_to_disk(tmp_path / "d")
    found = read(tmp_path / "d")
    assert found["texts"] == ["a", "b", "c"]
    assert found["labels"] == ["good", "bad", "good"]
    assert found["places"][2] == f"{tmp_path / 'd'}, row 3"


def test_a_dataset_keeps_its_selection(tmp_path, read, dataset):
    dataset.select([2, 0]).save_to_disk(tmp_path / "d")
    assert read(tmp_path / "d")["texts"] == ["c", "a"]


def test_the_missing_class_of_a_dataset_is_null(tmp_path, read, dataset):
    dataset.map(lambda row: {"label": -1}).save_to_disk(tmp_path / "d")
    assert read(tmp_path / "d")["labels"] == [None] * 3


def test_a_dataset_with_splits_gives_each_its_own(tmp_path, dataset):
    splits = datasets.DatasetDict({"train": dataset, "dev": dataset.select([0])})
    splits.save_to_disk(tmp_path / "d")
    data = Data(train=str(tmp_path / "d"), validation=str(tmp_path / "d"))
    assert find_source(data, "train").paths == (tmp_path / "d" / "train",)
    assert find_source(data, "validation").paths == (tmp_path / "d" / "dev",)


def test_a_dataset_without_the_split_lists_those_it_has(tmp_path, dataset):
    datasets.DatasetDict({"train": dataset, "test": dataset}).save_to_disk(tmp_path / "d")
    with pytest.raises(DataMistake) as caught:
        find_source(Data(train="x", validation=str(tmp_path / "d")), "validation")
    assert caught.value.message == (
        f"spec.training.data.validation {tmp_path / 'd'} has no split validation or valid or dev, only test, train"
    )
    assert caught.value.hint == f"name the directory of the split itself, such as {tmp_path / 'd' / 'test'}"


def test_a_dataset_with_a_file_missing_is_a_mistake(tmp_path, mistake, dataset):
    dataset.save_to_disk(tmp_path / "d")
    next((tmp_path / "d").glob("*.arrow")).unlink()
    message, _ = mistake(tmp_path / "d")
    assert message.startswith(
        f"{tmp_path / 'd'}: spec.training.data.train cannot be loaded as a Hugging Face dataset: "
    )


def test_a_wrong_column_in_a_dataset_lists_those_present(tmp_path, mistake, dataset):
    dataset.save_to_disk(tmp_path / "d")
    message, hint = mistake(tmp_path / "d", label_column="class")
    assert message.endswith(
        "no column 'class', which spec.training.data.labelColumn names; the columns are: text, label"
    )
    assert hint == "set spec.training.data.labelColumn to one of them"
