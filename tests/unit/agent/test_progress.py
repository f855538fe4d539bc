"""Progress lines, the trainer's and those found by a regular expression."""

import json
import time

import pytest

from ddpk8s_agent.progress import PREFIX, Progress, parse_line


def test_the_newest_step_is_known_and_never_goes_back() -> None:
    progress = Progress(0, None)
    for step in (3, 7, 5):
        assert progress.observe(f'{PREFIX}{{"step": {step}}}') is None
    assert progress.step == 7


@pytest.mark.parametrize(
    "line", ["ddpk8s-progress: {", "ddpk8s-progress: [1]", ' ddpk8s-progress: {"step": 1}', "x"]
)
def test_what_is_no_progress_line_is_none(line: str) -> None:
    assert parse_line(line) is None


def test_a_regex_makes_lines_of_the_contract_with_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPK8S_PROGRESS_SECONDS", "0.000001")
    progress = Progress(2, r"(?P<step>[\d,]+)/(?P<total>\d+) lr=(?P<lr>\S+)( loss=(?P<loss>\S+))?")
    progress.observe("1,000/2000 lr=1e-3")
    time.sleep(0.01)
    line = progress.observe("at 1,500/2000 lr=2e-3 loss=inf")
    assert line is not None
    content = json.loads(line.removeprefix(PREFIX))
    assert content.pop("etaSeconds") >= 0
    assert content == {
        "attempt": 2,
        "phase": "training",
        "step": 1500,
        "total": 2000,
        "learningRate": 2e-3,
        "loss": "Infinity",
    }


def test_lines_are_held_back_and_the_last_one_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPK8S_PROGRESS_SECONDS", "3600")
    progress = Progress(0, r"step (?P<step>\d+)")
    shown = [progress.observe(f"step {step}") for step in range(1, 50)]
    assert [line for line in shown if line] == [PREFIX + '{"attempt": 0, "phase": "training", "step": 1}']
    assert progress.flush() == PREFIX + '{"attempt": 0, "phase": "training", "step": 49}'
    assert progress.flush() is None
    assert progress.step == 49
