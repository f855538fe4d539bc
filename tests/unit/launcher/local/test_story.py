"""What the agents' lines become on the screen: the panel's story, names of nodes, mistakes told once."""

import io
import json

import pytest
from rich.console import Console

from ddpk8s.local.agent import Line
from ddpk8s.local.display import Display
from ddpk8s.local.live import panel
from ddpk8s.local.story import Story, is_gate

WAITING = "waiting for node ranks 1, 3 (2 of 4 are here), 40 s"
HERE = "attempt 0: all 4 nodes are here, starting"
FAILED = "attempt 0 failed after step 120: rank 3 on node 1 (pid 7) was killed by SIGKILL"
AGAIN = "starting again: restart 1 of 3"


def drawn(story: Story, **progress: object) -> list[str]:
    console = Console(width=160, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(panel(progress, story))
    return [line.strip() for line in capture.get().splitlines()]


def test_the_panel_tells_who_is_waited_for_then_what_failed_and_which_restart_it_is() -> None:
    story = Story()
    assert len(drawn(story, phase="training", step=1, total=9)) == 2, "nothing unusual, no line of it"
    assert story.hear(WAITING)
    top, _, told = drawn(story, phase="training", step=120, total=804, etaSeconds=80)
    assert top.startswith("waiting")
    assert "step 120/804" in top
    assert "eta" not in top
    assert told == WAITING
    assert story.hear(HERE)
    assert drawn(story)[0].startswith("starting")
    story.trains()
    assert drawn(story, phase="training")[0].startswith("training")
    assert story.hear(FAILED)
    assert drawn(story, phase="training")[0].startswith("failed")
    assert story.hear(AGAIN)
    assert story.line == f"restart 1 of 3  |  {FAILED}"
    assert story.hear(WAITING)
    assert story.line.startswith(WAITING)


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        ("starting again in 5 s: restart 2 of 3", "starting"),
        ("attempt 3 failed: rank 0 on node 0 failed with exit code 1", "failed"),
        ("waiting for node rank 1 (1 of 2 is here), 2 s", "waiting"),
        ("attempt 3 ended: node 1 is lost", "ended"),
        ("  | attempt 3 failed: said a log", ""),
        ("error: spec.training.data.train: cannot read /x", ""),
        ("giving up: restarts used up", ""),
    ],
)
def test_only_the_agents_own_sentences_move_the_story(text: str, phase: str) -> None:
    story = Story()
    assert story.hear(text) == bool(phase)
    assert story.phase == phase


def test_the_gate_is_no_error() -> None:
    assert [is_gate(text) for text in (WAITING, HERE, FAILED, AGAIN)] == [True, True, False, False]


def show(display: Display, *lines: tuple[int, str, str]) -> None:
    for node, stream, text in lines:
        display.show(Line(node, "stdout" if stream == "out" else "stderr", text))


def test_plain_lines_name_the_node_and_progress_is_that_of_node_0(capsys: pytest.CaptureFixture[str]) -> None:
    step = "ddpk8s-progress: " + json.dumps({"step": 3, "total": 9, "phase": "training"})
    show(
        Display(),
        (0, "err", f"ddpk8s-agent: {WAITING}"),
        (1, "err", "ddpk8s-agent: node 0 is gone"),
        (1, "err", "[rank 1] a warning"),
        (1, "out", "[rank 1] a print"),
        (0, "out", step),
        (1, "out", step),
    )
    out, err = capsys.readouterr()
    assert out.splitlines() == ["[rank 1] a print", step]
    assert err.splitlines() == [
        f"ddpk8s-agent: {WAITING}",
        "ddpk8s-agent[1]: node 0 is gone",
        "[rank 1] a warning",
        "step 3/9",
    ]


def test_quiet_shows_what_agents_say_of_failures_and_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [(0, "err", f"ddpk8s-agent: {text}") for text in (WAITING, HERE, FAILED, AGAIN)]
    show(Display(quiet=True), *lines, (1, "err", "[rank 1] chatter"), (1, "err", "ddpk8s-agent: lost it"))
    assert capsys.readouterr().err.splitlines() == [
        f"ddpk8s-agent: {FAILED}",
        f"ddpk8s-agent: {AGAIN}",
        "ddpk8s-agent[1]: lost it",
    ]


def test_a_mistake_that_every_node_finds_is_told_once_with_its_hint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(
        Display(),
        (1, "err", "ddpk8s-agent: error: no file x"),
        (0, "err", "ddpk8s-agent: error: no file x"),
        (1, "err", "ddpk8s-agent:   hint: put it there"),
        (0, "err", "ddpk8s-agent:   hint: put it there"),
        (0, "err", "ddpk8s-agent: error: the port is taken"),
        (0, "err", "ddpk8s-agent:   hint: put it there"),
        (1, "err", "ddpk8s-agent: leaving"),
    )
    assert capsys.readouterr().err.splitlines() == [
        "ddpk8s-agent[1]: error: no file x",
        "ddpk8s-agent[1]:   hint: put it there",
        "ddpk8s-agent: error: the port is taken",
        "ddpk8s-agent:   hint: put it there",
        "ddpk8s-agent[1]: leaving",
    ]
