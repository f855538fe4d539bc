"""States that tell their step, and managers that are closed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ddpk8s_trainer.checkpoint import CheckpointManager

State = dict[str, Any]


def make_state(step: int) -> State:
    """A state as of `step`: other values for every step, kinds of tensors and keys that torch handles apart."""
    generator = torch.Generator().manual_seed(step)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    return {
        "model": {
            "weight": draw(300, 70),
            "half": draw(5).bfloat16(),
            "scalar": torch.tensor(float(step)),
            "empty": torch.empty(0, 3),
            "flags": draw(7) > 0,
            "transposed": draw(4, 6).t(),
        },
        "optimizer": {
            "state": {0: {"moment": draw(300, 70), "name": f"step {step}"}},
            "param_groups": [{"lr": 0.1 * step, "betas": (0.9, 0.99), "params": [0]}],
        },
        "step": step,
    }


def assert_same(left: object, right: object) -> None:
    """Equal bit for bit, in values, keys and types."""
    assert type(left) is type(right)
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        assert left.dtype == right.dtype
        assert torch.equal(left, right)
    elif isinstance(left, dict) and isinstance(right, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list) and isinstance(right, list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    else:
        assert left == right


class Job:
    """A job directory and the managers opened on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.reports: list[str] = []
        self.managers: list[CheckpointManager] = []

    def manager(self, run: str = "run-1", **settings: Any) -> CheckpointManager:
        settings = {"keep": 2, "asynchronous": False, "resume": "run"} | settings
        manager = CheckpointManager(self.directory, run, report=self.reports.append, **settings)
        self.managers.append(manager)
        return manager

    def filled(self, *steps: int, run: str = "run-1", keep: int = 9) -> list[Path]:
        """Save these steps; the directories."""
        manager = self.manager(run, keep=keep)
        manager.open()
        for step in steps:
            manager.save(step, make_state(step), {"step": step})
        assert [saved.error for saved in manager.finish()] == [None] * len(steps)
        return [self.directory / f"step-{step:08d}" for step in steps]

    def names(self) -> list[str]:
        """What is in the directory, but for the note of its last run."""
        return sorted(path.name for path in self.directory.iterdir() if path.name != ".run-id")


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path / "job")
    yield job
    for manager in job.managers:
        manager.close()


@pytest.fixture
def state() -> Callable[[int], State]:
    return make_state


@pytest.fixture
def same() -> Callable[[object, object], None]:
    return assert_same
