"""Save, find, load, keep: one process, real files."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp

from ddpk8s_trainer.checkpoint import check_space, state_bytes
from ddpk8s_trainer.errors import CheckpointMistake

Make = Callable[[int], dict[str, Any]]
Same = Callable[[object, object], None]


def test_open_finds_nothing_when_the_directory_is_new(job: Any) -> None:
    assert job.manager().open() is None
    assert job.names() == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_load_gives_back_what_was_saved(job: Any, state: Make, same: Same, asynchronous: bool) -> None:
    manager = job.manager(asynchronous=asynchronous)
    manager.open()
    manager.save(7, state(7), {"position": [1, 2], "loss": 0.1})
    [saved] = manager.finish()
    assert (saved.step, saved.error, saved.best) == (7, None, False)
    assert saved.bytes > state_bytes(state(7))
    assert saved.seconds >= saved.stalled > 0

    found = job.manager().open()
    assert found is not None
    assert (found.step, found.metadata, found.rejected) == (7, {"position": [1, 2], "loss": 0.1}, [])
    assert found.path == job.directory / "step-00000007"
    loaded = job.manager().load(found, state(1))
    same(loaded, state(7))


def test_load_writes_into_the_tensors_given(job: Any, state: Make) -> None:
    job.filled(3)
    manager = job.manager()
    given = state(1)
    weight = given["model"]["weight"]
    assert manager.load(manager.open(), given) is given
    assert torch.equal(weight, state(3)["model"]["weight"])


def test_state_may_change_when_asynchronous_save_returned(job: Any, state: Make, same: Same) -> None:
    manager = job.manager(asynchronous=True)
    manager.open()
    given, metadata = state(1), {"list": [1]}
    manager.save(1, given, metadata)
    given["model"]["weight"].zero_()
    given["optimizer"]["param_groups"][0]["lr"] = -1.0
    metadata["list"].append(2)
    manager.finish()
    found = manager.open()
    assert found.metadata == {"list": [1]}
    same(manager.load(found, state(2)), state(1))


def test_states_of_other_shape_can_follow_each_other(job: Any, state: Make, same: Same) -> None:
    manager = job.manager()
    manager.open()
    grown = {**state(2), "more": torch.arange(9)}
    manager.save(1, state(1), {})
    manager.save(2, grown, {})
    manager.save(3, grown, {})
    assert [saved.error for saved in manager.finish()] == [None] * 3
    loaded = manager.load(manager.open(), {**state(9), "more": torch.zeros(9, dtype=torch.long)})
    same(loaded, grown)


def test_torch_itself_loads_a_checkpoint(job: Any, state: Make, same: Same) -> None:
    [path] = job.filled(5)
    given = {"model": state(1)["model"]}
    dcp.load(given, checkpoint_id=path, no_dist=True)
    same(given["model"], state(5)["model"])


def test_newest_and_best_are_kept(job: Any, state: Make) -> None:
    manager = job.manager(keep=2)
    manager.open()
    for step in range(1, 7):
        manager.save(step, state(step), {}, best=step in (1, 3))
    manager.finish()
    assert job.names() == [f"step-{step:08d}" for step in (3, 5, 6)]
    assert manager.best == job.directory / "step-00000003"
    again = job.manager(keep=2)
    again.open()
    assert again.best == manager.best
    again.save(7, state(7), {}, best=True)
    again.finish()
    assert job.names() == [f"step-{step:08d}" for step in (6, 7)]


def test_saving_a_step_again_replaces_it(job: Any, state: Make, same: Same) -> None:
    job.filled(4)
    manager = job.manager()
    manager.open()
    manager.save(4, {**state(4), "step": 44}, {"again": True}, best=True)
    assert [saved.error for saved in manager.finish()] == [None]
    assert job.names() == ["step-00000004"]
    found = manager.open()
    assert found.metadata == {"again": True}
    same(manager.load(found, state(1)), {**state(4), "step": 44})


def test_per_rank_entry_comes_back(job: Any, state: Make) -> None:
    manager = job.manager()
    manager.open()
    own = {"torch": torch.get_rng_state(), "python": (3, (1, 2), None)}
    manager.save(1, {**state(1), "per_rank": own}, {})
    found = manager.open()
    assert found.per_rank
    loaded = manager.load(found, {**state(2), "per_rank": None})["per_rank"]
    assert torch.equal(loaded["torch"], own["torch"])
    assert loaded["python"] == own["python"]
    assert "per_rank" not in manager.load(found, state(2))


def test_per_rank_entry_is_none_when_none_was_saved(job: Any, state: Make) -> None:
    job.filled(1)
    manager = job.manager()
    assert manager.load(manager.open(), {**state(2), "per_rank": {}})["per_rank"] is None


def test_another_state_is_refused_by_name(job: Any, state: Make) -> None:
    job.filled(1)
    manager = job.manager()
    found = manager.open()
    other = state(2)
    other["model"]["weight"] = torch.zeros(300, 71)
    other["model"]["half"] = other["model"]["half"].float()
    other["model"]["extra"] = torch.zeros(1)
    del other["step"]
    with pytest.raises(CheckpointMistake) as caught:
        manager.load(found, other)
    text = caught.value.message
    assert caught.value.exit_code == 78
    assert (
        "model.weight is float32 of shape [300, 70] in the checkpoint and float32 of shape [300, 71]" in text
    )
    assert "model.half is bfloat16 of shape [5] in the checkpoint and float32 of shape [5] here" in text
    assert "model.extra is not in the checkpoint" in text
    assert "step is only in the checkpoint" in text


def test_at_most_five_differences_are_named(job: Any, state: Make) -> None:
    job.filled(1)
    manager = job.manager()
    with pytest.raises(CheckpointMistake) as caught:
        manager.load(manager.open(), {**state(1), **{f"new{number}": number for number in range(9)}})
    assert caught.value.message.count("is not in the checkpoint") == 5
    assert caught.value.message.endswith("and 4 more")


def test_state_that_cannot_be_saved_fails_the_save_only(job: Any, state: Make) -> None:
    manager = job.manager()
    manager.open()
    manager.save(1, {**state(1), "lock": threading.Lock()}, {})
    manager.save(2, state(2), {"bad": object()})
    manager.save(3, state(3), {})
    errors = [saved.error for saved in manager.finish()]
    assert "cannot pickle '_thread.lock' object" in errors[0]
    assert "not JSON serializable" in errors[1]
    assert errors[2] is None
    assert job.names() == ["step-00000003"]


def test_check_space_says_what_is_needed_and_free(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    check_space(tmp_path / "not-yet" / "job", free // 4)
    with pytest.raises(CheckpointMistake, match=r"two checkpoints of .* need .*, .* are free"):
        check_space(tmp_path, free)


def test_state_bytes_counts_tensors_only() -> None:
    nested = {"a": torch.zeros(3), "b": [torch.zeros(2, dtype=torch.int64), {"c": torch.zeros(1).bfloat16()}]}
    assert state_bytes({**nested, "text": "x" * 100}) == 12 + 16 + 2
