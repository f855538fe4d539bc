"""Checkpoints of several processes: saved by two, loaded by one, two and three; faults of a rank and of the volume."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gang
ROOT = Path(__file__).resolve().parents[2]
Seen = list[dict[str, Any]]


def launch(directory: Path, *gangs: str) -> None:
    """Run scenarios such as `save:2` one after the other."""
    command = [sys.executable, "-m", "tests.trainer.checkpoint_worker", str(directory), *gangs]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr


def seen_by(directory: Path, scenario: str, world: int) -> Seen:
    """What each rank saw."""
    paths = [directory / f"{scenario}-{world}-{rank}.json" for rank in range(world)]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("saved")
    launch(directory, "save:2", "load:1", "load:2", "load:3")
    return directory


def test_all_ranks_hear_of_each_save(saved: Path) -> None:
    seen = seen_by(saved, "save", 2)
    assert seen[0] == seen[1]
    assert [(step, error) for step, error, _ in seen[0]["saved"]] == [(1, None), (2, None), (3, None)]
    assert seen[0]["best"] == str(saved / "job" / "step-00000001")


def test_each_rank_writes_its_share(saved: Path) -> None:
    newest = saved / "job" / "step-00000003"
    sizes = [(newest / f"__{rank}_0.distcp").stat().st_size for rank in range(2)]
    assert max(sizes) < 1.1 * min(sizes)
    assert sum(sizes) < 1.1 * (8 << 20)


@pytest.mark.parametrize("world", [1, 2, 3])
def test_another_number_of_ranks_loads_the_same(saved: Path, world: int) -> None:
    for rank, seen in enumerate(seen_by(saved, "load", world)):
        assert (seen["step"], seen["metadata"], seen["world_size"]) == (3, {"step": 3}, 2)
        assert seen["same"]
        assert seen["same_rows"]
        assert seen["expects_per_rank"] == (world == 2)
        assert seen["per_rank"] == ([rank, [rank * 10 + 3.0] * 3] if world == 2 else None)
        assert "model.w0 is float32 of shape [32768] in the checkpoint" in seen["mistake"]
        assert "extra is not in the checkpoint" in seen["mistake"]  # rank 0's alone, yet every rank says it


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    path = tmp_path / "volume"
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no small volume can be mounted here: {made.stderr.strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_failed_saves_leave_the_last_checkpoint_and_later_saves_succeed(volume: Path) -> None:
    launch(volume, "faults:2")
    seen = seen_by(volume, "faults", 2)
    assert seen[0] == seen[1], "all ranks say the same"
    errors, after = seen[0]["errors"], seen[0]["after"]
    assert [name for name, error in errors.items() if error is None] == ["none", "space again", "recovered"]

    too_large = errors["file too large on one rank"]
    assert too_large.startswith(f"rank 1 could not write {volume}/job/.partial-step-00000002/__1_0.distcp: ")
    assert "(EFBIG, errno 27)" in too_large
    full = errors["disk full"]
    assert (
        "No space left on device (ENOSPC, errno 28); the checkpoint needs 2.0 MiB, 1.0 MiB are free" in full
    )
    gone = errors["directory gone"]
    assert f"{volume}/job/.partial-step-00000005: No such file or directory (ENOENT, errno 2)" in gone
    assert "Read-only file system (EROFS, errno 30)" in errors["read-only"]
    assert f"checkpoint directory {volume}/job cannot be used" in seen[0]["mistake"]
    assert "Read-only file system" in seen[0]["mistake"]
    assert "rank 1" in errors["no pickle"]
    assert "rank 1" in errors["odd type"] or "sparse" in errors["odd type"].lower()

    left = {name: [entry for entry in entries or [] if entry != ".run-id"] for name, entries in after.items()}
    assert left["file too large on one rank"] == left["disk full"] == ["step-00000001"]
    assert left["directory gone"] == []
    assert left["read-only"] == left["no pickle"] == left["odd type"] == ["step-00000004"]
    assert left["recovered"] == ["step-00000009"]
    assert (seen[0]["found"], seen[0]["same"]) == (9, True)
