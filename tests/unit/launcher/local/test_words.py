"""Lines for people: progress, the result, and why there is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from ddpk8s.local.summary import Outcome, failure_lines, newest_step, result_lines
from ddpk8s.local.texts import format_seconds, progress_line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59.6, "1m00s"), (80, "1m20s"), (3599.7, "1h00m"), (7500, "2h05m"), (-3, "0s")],
)
def test_times_are_short(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (
            {
                "step": 120,
                "total": 804,
                "epoch": 0.449,
                "loss": 0.43124,
                "samplesPerSecond": 411.7,
                "etaSeconds": 80,
            },
            "step 120/804  epoch 0.45  loss 0.4312  412 samples/s  eta 1m20s",
        ),
        ({"phase": "tokenizing"}, "tokenizing"),
        ({"phase": "evaluating", "step": 8, "total": 9, "loss": 1.0}, "evaluating  step 8/9"),
        ({"step": 3, "loss": "NaN"}, "step 3  loss NaN"),
        ({}, ""),
    ],
)
def test_a_progress_line_is_read_at_a_glance(progress: dict[str, Any], line: str) -> None:
    assert progress_line(progress) == line


def outcome(tmp_path: Path, code: int, **word: Any) -> Outcome:
    return Outcome("reviews", "run-1", code, word, [tmp_path / "run"], tmp_path / "ckpt" / "reviews", 161.0)


def test_the_result_names_figures_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status = tmp_path / "run" / "attempt-1" / "status"
    status.mkdir(parents=True)
    finished = {
        "model": str(tmp_path / "ckpt" / "reviews" / "model"),
        "report": None,
        "evaluation": {"metric": "accuracy", "value": 0.87312, "step": 700},
    }
    (status / "finished.json").write_text(json.dumps(finished))
    lines = result_lines(outcome(tmp_path, 0, attempt=1, restarts=1, step=804))
    assert lines == [
        "reviews finished at step 804 in 2m41s, 1 restart",
        "  accuracy    0.8731 (best, at step 700)",
        "  model       ckpt/reviews/model",
        "  logs        run/attempt-1",
    ]


def test_a_failure_says_why_where_and_what_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for step, run_id in ((8, "run-1"), (120, "run-1"), (130, None), (140, "run-0")):
        directory = tmp_path / "ckpt" / "reviews" / f"step-{step:08d}"
        directory.mkdir(parents=True)
        if run_id:
            (directory / "manifest.json").write_text(json.dumps({"step": step, "runId": run_id}))
    assert newest_step(tmp_path / "ckpt" / "reviews", "run-1") == 120
    assert failure_lines(outcome(tmp_path, 1, attempt=2, message="rank 1 failed")) == [
        "reviews failed: rank 1 failed",
        "  logs: run/attempt-2",
        "  next: mend the cause, then run the same command again to continue from step 120",
    ]
    assert failure_lines(outcome(tmp_path, 143, attempt=2, message="stopped as asked")) == [
        "reviews stopped; run the same command again to continue from step 120"
    ]


def test_a_mistake_and_an_agent_without_a_word_are_told_too(tmp_path: Path) -> None:
    (mistake, advice) = failure_lines(outcome(tmp_path, 78, message="no file"))
    assert mistake == "reviews failed: the mistake above"
    assert advice == "  next: correct it, then run the same command again"
    assert "exit code 137 without a word" in failure_lines(outcome(tmp_path, 137))[0]


@pytest.mark.parametrize(
    ("word", "node", "logs"),
    [
        ({"attempt": 1, "rank": 3}, 0, "node-1/attempt-1"),
        ({"attempt": 1, "rank": 1}, 0, "run/attempt-1"),
        ({"attempt": 1, "rank": None}, 0, "run/attempt-1"),
        ({"attempt": 1, "rank": None}, 1, "node-1/attempt-1"),
        ({"attempt": 1, "rank": None, "node": 1}, 0, "node-1/attempt-1"),
        ({"attempt": 2, "rank": 3}, 0, "run/attempt-2"),
        ({"attempt": 1, "rank": 99}, 0, "node-1/attempt-1"),
        ({"attempt": None, "rank": 3}, 0, None),
    ],
)
def test_logs_are_those_of_the_rank_that_failed(
    tmp_path: Path, word: dict[str, Any], node: int, logs: str | None
) -> None:
    states = [tmp_path / "run", tmp_path / "node-1"]
    (states[0] / "attempt-2").mkdir(parents=True)
    (states[1] / "attempt-1").mkdir(parents=True)
    end = Outcome("reviews", "run-1", 1, word, states, None, 1.0, nproc=2, node=node)
    assert end.attempt_directory == (tmp_path / logs if logs else None)


def test_the_result_is_read_from_node_0_whoever_speaks(tmp_path: Path) -> None:
    states = [tmp_path / "run", tmp_path / "node-1"]
    status = states[0] / "attempt-0" / "status"
    status.mkdir(parents=True)
    (status / "finished.json").write_text('{"model": "/m"}')
    end = Outcome("reviews", "run-1", 0, {"attempt": 0}, states, None, 1.0, nproc=1, node=1)
    assert "  model       /m" in result_lines(end)
