"""Signs of life, from the files and the output of ranks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ddpk8s_agent.beats import Beats
from ddpk8s_agent.console import Console
from ddpk8s_agent.logs import WorkerLogs
from ddpk8s_agent.plan import Command, Plan
from ddpk8s_agent.progress import Progress

WIDTH = 64


@pytest.fixture(autouse=True)
def _quiet(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Keep what the consoles write, and end them."""
    yield
    while Node.consoles:
        Node.consoles.pop().close()
    capfd.readouterr()


class Node:
    """Node 1 of two, with two ranks on each."""

    consoles: ClassVar[list[Console]] = []

    def __init__(self, directory: Path, *, module: bool = False, regex: str | None = None) -> None:
        self.directory = directory
        plan = Plan(
            job="test",
            run_id="run-1",
            nnodes=2,
            node_rank=0 if regex else 1,
            nproc_per_node=2,
            master_addr="127.0.0.1",
            master_port=None,
            command=Command("trainer" if module else None, None if module else "train.py", (), None),
            env={},
            max_restarts=0,
            grace_period_seconds=60,
            progress_regex=regex,
        )
        self.progress = Progress(0, regex)
        self.consoles.append(Console())
        self.logs = WorkerLogs(directory, plan.ranks, self.consoles[-1], self.progress, many=True)
        self.beats = Beats(plan, directory, self.progress, self.logs)

    def beat(self, rank: int, n: int, step: int) -> None:
        line = json.dumps({"n": n, "step": step, "phase": "training"})
        (self.directory / f"rank-{rank}.beat").write_text(f"{line:<{WIDTH - 1}}\n")

    def write(self, rank: int, stream: str, text: str) -> None:
        path = self.logs.torchrun_directory / "id" / "attempt_0" / str(rank % 2) / f"{stream}.log"
        named = self.directory / f"rank-{rank}.{stream}.log"
        if not named.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        with (named if named.exists() else path).open("a") as file:
            file.write(text)
        self.logs.forward()

    def look(self) -> dict[int, tuple[int | None, bool, bool]]:
        """Return of each rank: step, whether its last sign is of this very look, whether it ever gave one."""
        return {rank: (step, age == 0.0, ever) for rank, step, age, ever in self.beats.look()}


def later(node: Node, seconds: float = 5.0) -> None:
    """Have the last signs of all ranks be of so long ago."""
    node.beats._seen = {
        rank: (sign, step, since - seconds, ever)
        for rank, (sign, step, since, ever) in node.beats._seen.items()
    }


def test_a_beat_is_a_sign_once_and_again_only_when_its_number_changed(tmp_path: Path) -> None:
    node = Node(tmp_path, module=True)
    later(node)
    assert node.look() == {2: (None, False, False), 3: (None, False, False)}
    node.beat(2, n=1, step=0)
    assert node.look()[2] == (0, True, True)
    later(node)
    assert node.look()[2] == (0, False, True)
    node.beat(2, n=2, step=0)
    assert node.look()[2] == (0, True, True), "the same step, but it lives: it evaluates, for example"
    node.beat(3, n=7, step=4)
    assert node.look()[3] == (4, True, True)
    assert node.beats.step == 4


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"step": 3}', b"\xff\xfe", b"null", b" " * WIDTH]
)
def test_a_beat_that_cannot_be_read_is_no_sign(tmp_path: Path, content: bytes) -> None:
    node = Node(tmp_path, module=True)
    later(node)
    (tmp_path / "rank-2.beat").write_bytes(content)
    assert node.look()[2] == (None, False, False)


def test_a_step_stays_known_when_a_beat_is_caught_half_written(tmp_path: Path) -> None:
    node = Node(tmp_path, module=True)
    node.beat(2, n=1, step=9)
    node.look()
    (tmp_path / "rank-2.beat").write_bytes(b"")
    later(node)
    assert node.look()[2] == (9, False, True)
    node.beat(2, n=1, step=9)
    assert node.look()[2] == (9, False, True), "the same beat as before is nothing new"


@pytest.mark.parametrize(
    "beat", [{"n": 1, "step": "x"}, {"n": 1, "step": None}, {"n": 1, "step": True}, {"n": 1}]
)
def test_a_beat_without_a_step_is_a_sign_all_the_same(tmp_path: Path, beat: dict[str, Any]) -> None:
    node = Node(tmp_path, module=True)
    (tmp_path / "rank-2.beat").write_text(json.dumps(beat))
    assert node.look()[2] == (None, True, True)


def test_only_progress_of_rank_0_is_a_sign_when_there_is_a_regular_expression(tmp_path: Path) -> None:
    node = Node(tmp_path, regex=r"step (?P<step>\d+)")
    later(node)
    node.write(1, "stdout", "step 3\n")
    node.write(0, "stdout", "loading\n")
    assert node.look() == {0: (None, False, False), 1: (None, False, False)}
    node.write(0, "stdout", "step 3\n")
    assert node.look()[0] == (3, True, True)
    later(node)
    node.write(0, "stdout", "no progress\n")
    assert node.look()[0] == (3, False, True)
    node.write(0, "stderr", "step 3\n")
    assert node.look()[0] == (3, True, True), "the same step again, but it was printed anew"


def test_any_line_is_a_sign_when_a_script_tells_nothing_else(tmp_path: Path) -> None:
    node = Node(tmp_path)
    later(node)
    node.write(2, "stdout", "")
    node.write(3, "stderr", "half a line")
    assert node.look() == {2: (None, False, False), 3: (None, False, False)}, "an empty file says nothing"
    node.write(3, "stderr", " and its end\n")
    assert node.look() == {2: (None, False, False), 3: (None, True, True)}
    later(node)
    assert node.look()[3] == (None, False, True)


def test_it_is_time_to_look_again_only_after_a_while(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.look()
    assert not node.beats.due()
    node.beats._looked -= 1.0
    assert node.beats.due()
