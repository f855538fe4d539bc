"""`ddpk8s validate`: exit codes, and what goes where."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[4] / "k8s" / "examples"
VALID = "valid: reviews, 1 node x 2 processes (CPU), sequence-classification, global batch 64, 3 epochs\n"


@pytest.fixture
def reviews(tmp_path: Path) -> str:
    text = (EXAMPLES / "reviews.yaml").read_text()
    (tmp_path / "job.yaml").write_text(text)
    (tmp_path / "bad.yaml").write_text(text.replace("nnodes: 1", "nnodes: one"))
    return text


def test_valid_file_is_summarized_on_stdout(ddpk8s: Run, reviews: str) -> None:
    done = ddpk8s("validate", "job.yaml")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"job.yaml: {VALID}", "")


def test_job_yaml_is_taken_and_told_when_no_file_is_given(ddpk8s: Run, reviews: str) -> None:
    done = ddpk8s("validate")
    assert (done.returncode, done.stdout) == (0, f"job.yaml: {VALID}")
    assert done.stderr == "no file given: taking job.yaml\n"


def test_mistakes_go_to_stderr_and_exit_2(ddpk8s: Run, reviews: str) -> None:
    done = ddpk8s("validate", "bad.yaml", "-f", "job.yaml", "--set", "spec.training.epochs=0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "bad.yaml:9:14: spec.topology.nnodes is 'one', but must be a whole number\n"
        "--set spec.training.epochs=0: spec.training.epochs is 0, but must be at least 1 epoch\n"
        "--set spec.training.epochs=0: spec.training.epochs is 0, but must be at least 1 epoch\n"
    )


def test_every_file_is_judged_when_one_is_missing(ddpk8s: Run, reviews: str) -> None:
    done = ddpk8s("validate", "none.yaml", "job.yaml")
    assert (done.returncode, done.stdout) == (2, f"job.yaml: {VALID}")
    assert (
        done.stderr
        == "none.yaml: there is no such file\n  hint: `ddpk8s init none.yaml` writes one to start from\n"
    )


def test_warnings_go_to_stderr_and_exit_0(ddpk8s: Run, reviews: str) -> None:
    done = ddpk8s("validate", "-", "--set", "spec.training.data.train=/other", stdin=reviews)
    assert (done.returncode, done.stdout) == (0, f"-: {VALID}")
    assert done.stderr.startswith(
        "--set spec.training.data.train=/other: warning: spec.training.data.train is '/other'"
    )


def test_json_report_has_every_problem(ddpk8s: Run, reviews: str) -> None:
    done = ddpk8s("validate", "job.yaml", "bad.yaml", "-o", "json")
    assert done.returncode == 2
    good, bad = json.loads(done.stdout)
    assert good == {"file": "job.yaml", "valid": True, "problems": [], "summary": VALID[7:-1]}
    assert bad == {
        "file": "bad.yaml",
        "valid": False,
        "problems": [
            {
                "place": "bad.yaml:9:14",
                "severity": "error",
                "field": "spec.topology.nnodes",
                "message": "spec.topology.nnodes is 'one', but must be a whole number",
                "hint": None,
            }
        ],
    }


def test_warnings_are_in_the_json_report(ddpk8s: Run, reviews: str) -> None:
    done = ddpk8s("validate", "job.yaml", "-o", "json", "--set", "spec.training.data.train=/other")
    (report,) = json.loads(done.stdout)
    assert report["valid"]
    (problem,) = report["problems"]
    assert (problem["field"], problem["severity"]) == ("spec.training.data.train", "warning")
