"""What is no valid checkpoint is rejected by name, and other runs' checkpoints are moved, never deleted."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddpk8s_trainer.errors import CheckpointMistake

DATA = "__0_0.distcp"


def flip_a_bit(path: Path) -> None:
    content = bytearray((path / DATA).read_bytes())
    content[len(content) // 2] ^= 1
    (path / DATA).write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path / DATA, 4096)


def append(path: Path) -> None:
    with (path / DATA).open("ab") as file:
        file.write(b"garbage")


def half_a_manifest(path: Path) -> None:
    manifest = path / "manifest.json"
    os.truncate(manifest, manifest.stat().st_size // 2)


def edit_manifest(path: Path, **changes: Any) -> None:
    manifest = path / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changes))


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "bit flipped": (flip_a_bit, f"{DATA} was changed: its hash does not match"),
    "truncated": (truncate, f"{DATA} has 4096 bytes instead of"),
    "grown": (append, f"{DATA} has "),
    "file missing": (lambda path: (path / DATA).unlink(), f"{DATA} is missing"),
    "description missing": (lambda path: (path / ".metadata").unlink(), ".metadata is missing"),
    "description harmed": (lambda path: (path / ".metadata").write_bytes(b"x"), ".metadata has 1 bytes"),
    "file is a directory": (
        lambda path: ((path / DATA).unlink(), (path / DATA).mkdir()),
        f"{DATA} has ",
    ),
    "stranger": (lambda path: (path / "junk.bin").touch(), "junk.bin does not belong to it"),
    "manifest missing": (lambda path: (path / "manifest.json").unlink(), "manifest.json is missing"),
    "manifest torn": (half_a_manifest, "manifest.json is not JSON"),
    "manifest binary": (
        lambda path: (path / "manifest.json").write_bytes(b"\xff\x00\xfe"),
        "manifest.json is not JSON",
    ),
    "manifest a list": (lambda path: (path / "manifest.json").write_text("[]"), "is not a manifest"),
    "manifest edited": (lambda path: edit_manifest(path, step=99), "its checksum does not match"),
    "other version": (lambda path: edit_manifest(path, formatVersion=2), "format version 2 is not known"),
    "directory empty": (
        lambda path: (shutil.rmtree(path), path.mkdir()),
        "manifest.json is missing",
    ),
    "not a directory": (lambda path: (shutil.rmtree(path), path.touch()), "not a directory"),
    "renamed": (
        lambda path: (shutil.rmtree(path), shutil.copytree(path.with_name("step-00000001"), path)),
        "manifest.json is of step 1",
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_harmed_checkpoint_is_rejected_and_the_one_before_used(job: Any, harm: str) -> None:
    path = job.filled(1, 2)[1]
    action, reason = HARMS[harm]
    action(path)
    found = job.manager().open()
    assert found.step == 1
    [(name, why)] = found.rejected
    assert name == "step-00000002"
    assert why.startswith(reason) or reason in why


def test_hidden_strangers_do_no_harm(job: Any) -> None:
    [path] = job.filled(1)
    (path / ".nfs0001").touch()
    assert job.manager().open().rejected == []


def test_nothing_valid_is_a_mistake_that_names_all(job: Any) -> None:
    first, second = job.filled(1, 2)
    flip_a_bit(first)
    half_a_manifest(second)
    with pytest.raises(CheckpointMistake) as caught:
        job.manager().open()
    assert caught.value.exit_code == 78
    assert f"step-00000001: {DATA} was changed" in caught.value.message
    assert "step-00000002: manifest.json is not JSON" in caught.value.message
    assert "--fresh" in str(caught.value.hint)
    assert job.names() == ["step-00000001", "step-00000002"]


@pytest.mark.parametrize("resume", ["run", "never"])
def test_checkpoints_of_another_run_are_moved_away(job: Any, resume: str) -> None:
    first, second = job.filled(1, 2, run="old")
    half_a_manifest(second)
    assert job.manager("new", resume=resume).open() is None
    assert not first.exists()
    archive = job.directory / "archive" / "old"
    assert sorted(path.name for path in archive.iterdir()) == ["step-00000001", "step-00000002"]
    assert job.reports == [f"moved step-00000001, step-00000002 of run old to {archive}"]


def test_moving_away_never_overwrites(job: Any) -> None:
    for _ in range(3):
        job.filled(1, run="old")
        assert job.manager("new").open() is None
        job.manager("old").open()
    names = sorted(path.name for path in (job.directory / "archive" / "old").iterdir())
    assert names == ["step-00000001", "step-00000001.2", "step-00000001.3"]


def test_run_id_cannot_lead_out_of_the_archive(job: Any) -> None:
    job.filled(1, run="../../etc")
    job.manager("new").open()
    assert [path.name for path in (job.directory / "archive").iterdir()] == ["_.._etc"]


def test_auto_takes_checkpoints_of_any_run(job: Any) -> None:
    job.filled(1, 2, run="old")
    found = job.manager("new", resume="auto").open()
    assert (found.step, found.run_id) == (2, "old")
    assert job.names() == ["step-00000001", "step-00000002"]


def test_own_checkpoints_are_found_though_resume_is_never(job: Any) -> None:
    job.filled(1)
    assert job.manager(resume="never").open().step == 1


def test_what_a_dead_process_left_is_cleaned_up(job: Any) -> None:
    [path] = job.filled(1)
    shutil.copytree(path, job.directory / ".partial-step-00000002")
    shutil.copytree(path, job.directory / ".trash-1234")
    path.rename(job.directory / ".old-step-00000001")
    found = job.manager().open()
    assert found.step == 1
    assert job.names() == ["step-00000001"]
    assert job.reports == ["removed .partial-step-00000002, which was not complete"]


def test_replaced_checkpoint_goes_when_its_successor_is_there(job: Any) -> None:
    [path] = job.filled(1)
    shutil.copytree(path, job.directory / ".old-step-00000001")
    assert job.manager().open().step == 1
    assert job.names() == ["step-00000001"]


def test_rejected_checkpoints_do_not_count_as_kept(job: Any, state: Any) -> None:
    _, second, third = job.filled(1, 2, 5)
    flip_a_bit(third)
    manager = job.manager(keep=2)
    assert manager.open().step == 2
    manager.save(3, state(3), {})
    manager.finish()
    assert job.names() == [second.name, "step-00000003", third.name]
    manager.save(6, state(6), {})
    manager.save(7, state(7), {})
    manager.finish()
    assert job.names() == ["step-00000006", "step-00000007"]


def test_harmed_best_checkpoint_is_not_offered(job: Any, state: Any) -> None:
    manager = job.manager(keep=9)
    manager.open()
    for step in (1, 2, 3):
        manager.save(step, state(step), {}, best=step < 3)
    manager.finish()
    flip_a_bit(job.directory / "step-00000002")
    again = job.manager(keep=9)
    found = again.open()
    assert (found.step, found.rejected) == (3, [])
    assert again.best == job.directory / "step-00000001"
    assert job.reports == [
        f"step-00000002, once the best, is not valid: {DATA} was changed: its hash does not match"
    ]


@pytest.mark.parametrize("parent", [False, True])
def test_directory_that_is_a_file_is_a_mistake(job: Any, parent: bool) -> None:
    job.directory.parent.mkdir(exist_ok=True)
    job.directory.touch()
    if parent:
        job.directory = job.directory / "below"
    with pytest.raises(CheckpointMistake, match=r"cannot be used: .*Not a directory .ENOTDIR") as caught:
        job.manager().open()
    assert caught.value.exit_code == 78


def test_other_things_in_the_directory_are_left_alone(job: Any) -> None:
    job.filled(1)
    for name in ("step-1", "step-000000001", "step-00000002.bak", "metrics.jsonl"):
        (job.directory / name).touch()
    assert job.manager().open().rejected == []
    assert len(job.names()) == 5
