"""The main job as the README starts it: real reviews, two processes, accuracy against a linear baseline."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.gang


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the example in an empty directory; return that directory."""
    folder = tmp_path_factory.mktemp("quickstart")
    data = folder / ".ddpk8s" / "volumes" / "data" / "reviews"
    subprocess.run([sys.executable, ROOT / "examples" / "prepare_reviews.py", "--output", data], check=True)
    command = [Path(sys.executable).with_name("ddpk8s"), "run", ROOT / "k8s" / "examples" / "reviews.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    (folder / "stdout.txt").write_text(done.stdout)
    (folder / "stderr.txt").write_text(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def job_directory(folder: Path) -> Path:
    return folder / ".ddpk8s" / "volumes" / "checkpoints" / "reviews"


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_no_text_is_shared_between_training_and_validation(quickstart: Path) -> None:
    data = quickstart / ".ddpk8s" / "volumes" / "data" / "reviews"
    train, validation = (
        [entry["text"] for entry in lines(data / f"{name}.jsonl")] for name in ("train", "validation")
    )
    assert len(train) > 10_000
    assert len(validation) > 1_000
    assert len(set(train)) == len(train)
    assert not set(train) & set(validation)


def test_accuracy_is_good_and_no_more_than_a_point_under_the_baseline(quickstart: Path) -> None:
    data = quickstart / ".ddpk8s" / "volumes" / "data" / "reviews"
    command = [sys.executable, ROOT / "examples" / "baseline.py", data]
    baseline = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)[
        "accuracy"
    ]
    evaluations = [
        e for e in lines(job_directory(quickstart) / "metrics.jsonl") if e["event"] == "evaluation"
    ]
    best = max(e["accuracy"] for e in evaluations)
    print(f"accuracy {best:.4f}, baseline {baseline:.4f}")
    assert best >= 0.82
    assert best >= baseline - 0.01


def test_result_is_left_and_said(quickstart: Path) -> None:
    left = job_directory(quickstart)
    page = (left / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert not re.search(r"""(src|href)=["'](https?:)?//""", page), "the page loads something from elsewhere"
    said = (quickstart / "stdout.txt").read_text()
    assert str(Path(".ddpk8s/volumes/checkpoints/reviews/model")) in said
    assert "report.html" in said
    assert "Traceback" not in (quickstart / "stderr.txt").read_text()


def test_exported_model_classifies_in_a_fresh_process(quickstart: Path) -> None:
    program = (
        "import sys, json; from transformers import pipeline;"
        "p = pipeline('text-classification', sys.argv[1]);"
        "print(json.dumps([r['label'] for r in p(['质量很差，非常失望，不推荐购买', '非常好，孩子很喜欢，推荐'])]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, job_directory(quickstart) / "model"],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == ["negative", "positive"]
