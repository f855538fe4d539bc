"""Which files a path of the configuration means."""

import re

import pytest

from ddpk8s.spec.training import Data
from ddpk8s_trainer.data.read import read_samples
from ddpk8s_trainer.data.sources import find_source
from ddpk8s_trainer.errors import DataMistake

LINE = '{"text": "a", "label": 1}\n'


def fault(train, **settings):
    with pytest.raises(DataMistake) as caught:
        find_source(Data(train=str(train), **settings), "train")
    return caught.value.message, caught.value.hint


def test_no_validation_is_no_source(tmp_path):
    assert find_source(Data(train="x"), "validation") is None


def test_a_missing_file_guesses_a_near_name(tmp_path):
    (tmp_path / "train.jsonl").write_text(LINE)
    (tmp_path / "notes.md").write_text("")
    assert fault(tmp_path / "trian.jsonl") == (
        f"spec.training.data.train {tmp_path / 'trian.jsonl'} does not exist",
        f"did you mean {tmp_path / 'train.jsonl'}?",
    )
    assert fault(tmp_path / "corpus")[1] == f"{tmp_path} holds notes.md, train.jsonl"


def test_a_missing_directory_names_the_nearest_one_that_exists(tmp_path):
    (tmp_path / "reviews").mkdir()
    message, hint = fault(tmp_path / "revews" / "a" / "train.jsonl")
    assert message == f"spec.training.data.train {tmp_path / 'revews/a/train.jsonl'} does not exist"
    assert hint == f"there is no directory {tmp_path / 'revews/a'}; {tmp_path} exists and holds reviews"


def test_a_missing_validation_file_names_its_own_field(tmp_path):
    with pytest.raises(DataMistake, match=r"^spec\.training\.data\.validation .*no\.csv does not exist\n"):
        find_source(Data(train="x", validation=str(tmp_path / "no.csv")), "validation")


def test_globs_and_directories_give_files_in_order(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "sub/c.jsonl.gz", "README.md", ".hidden.jsonl", "_SUCCESS"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(LINE)
    names = ["a.jsonl", "b.jsonl", "c.jsonl.gz"]
    by_directory = find_source(Data(train=str(tmp_path)), "train")
    assert [path.name for path in by_directory.paths] == names
    by_glob = find_source(Data(train=f"{tmp_path}/**/*.jsonl*"), "train")
    assert [path.name for path in by_glob.paths] == names
    assert by_glob.format == "jsonl"


def test_a_glob_that_matches_nothing_is_a_mistake(tmp_path):
    message, _ = fault(tmp_path / "*.csv")
    assert message == f"spec.training.data.train {tmp_path / '*.csv'} matches no file"


def test_mixed_formats_are_a_mistake(tmp_path):
    (tmp_path / "a.jsonl").write_text(LINE)
    (tmp_path / "b.csv").write_text("text,label\n")
    assert fault(tmp_path) == (
        f"spec.training.data.train {tmp_path} mixes formats: a.jsonl (jsonl) and b.csv (csv)",
        "name files of one format by a glob such as *.jsonl",
    )
    source = find_source(Data(train=str(tmp_path), format="csv"), "train")
    assert [path.name for path in source.paths] == ["b.csv"]


def test_a_directory_without_data_files_says_what_it_holds(tmp_path):
    (tmp_path / "a.txt").write_text("")
    message, hint = fault(tmp_path)
    assert message == f"spec.training.data.train {tmp_path} is a directory without data files"
    assert hint == (
        "files must end in .jsonl, .ndjson, .json, .csv, .tsv, .parquet (or these with .gz); it holds a.txt"
    )


def test_a_name_without_a_known_suffix_needs_a_format(tmp_path):
    path = tmp_path / "reviews.txt"
    path.write_text(LINE)
    message, hint = fault(path)
    assert message == f"spec.training.data.train {path} does not tell its format by its name"
    assert hint.startswith("set spec.training.data.format, or name the file with one of .jsonl")
    assert find_source(Data(train=str(path), format="jsonl"), "train").paths == (path,)


def test_a_directory_that_is_no_dataset_is_a_mistake_when_a_dataset_is_asked_for(tmp_path):
    message, hint = fault(tmp_path, format="dataset")
    assert message == (
        f"spec.training.data.train {tmp_path} is no Hugging Face dataset: "
        "it has neither dataset_dict.json nor state.json"
    )
    assert hint == "write it by save_to_disk of the library datasets"


def test_a_file_that_cannot_be_read_is_a_mistake():
    unreadable = "/proc/self/mem"  # for root too, unlike a file without permissions
    message = f"{unreadable}: spec.training.data.train cannot be read: Input/output error"
    data = Data(train=unreadable, format="jsonl")
    with pytest.raises(DataMistake, match=re.escape(message)):
        find_source(data, "train").content_hash()
    with pytest.raises(DataMistake, match=re.escape(message)):
        list(read_samples(find_source(data, "train"), data))


def test_the_hash_follows_contents_not_places(tmp_path):
    def hash_of(folder, content):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "a.jsonl").write_text(content)
        return find_source(Data(train=str(tmp_path / folder)), "train").content_hash()

    assert hash_of("one", LINE) == hash_of("two", LINE)
    assert hash_of("one", LINE) != hash_of("two", LINE.replace("a", "b"))
