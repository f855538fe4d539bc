"""Kill, stop and corrupt a training; what continues must be what would have been."""

import json
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.trainer.harness import checkpoints, consumed, events, losses, run, start, training

pytestmark = pytest.mark.gang

STEPS = 12  # two epochs of 96 samples in batches of 16, a checkpoint every 3 steps


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Uninterrupted runs of 2 and 3 processes, with dropout."""
    folders = {}
    for world_size in (2, 3):
        folder = tmp_path_factory.mktemp(f"undisturbed-{world_size}")
        gang = run(folder, training(folder), world_size)
        assert gang.codes == [0] * world_size, gang.outputs()
        assert len(losses(folder)) == STEPS
        folders[world_size] = folder
    return folders


def assert_as_undisturbed(folder: Path, reference: Path) -> None:
    """The surviving trajectory is the uninterrupted one: bit-equal losses, each sample once per epoch."""
    assert losses(folder) == losses(reference)
    assert [e["confusion"] for e in events(folder, "evaluation")] == [
        e["confusion"] for e in events(reference, "evaluation")
    ]
    steps = consumed(folder)
    assert steps == consumed(reference)
    for first in (1, STEPS // 2 + 1):
        epoch = Counter(i for step in range(first, first + STEPS // 2) for i in steps[step])
        assert epoch == Counter(range(96))


@pytest.mark.parametrize(
    ("world_size", "rank", "step"), [(2, 1, 8), (2, 0, 5), (3, 2, 7), (2, 0, 1), (2, 1, 12)]
)
def test_kill_of_a_worker_continues_bit_equal(
    tmp_path: Path, undisturbed: dict[int, Path], world_size: int, rank: int, step: int
) -> None:
    document = training(tmp_path)
    gang = start(tmp_path, document, world_size, fault=f"kill:{rank}:{step}")
    assert gang.processes[rank].wait(240) == -signal.SIGKILL
    gang.kill()
    again = run(tmp_path, document, world_size, attempt=1)
    assert again.codes == [0] * world_size, again.outputs()
    # The newest save may still have been on its way to disk: then it is the one before it.
    newest = (step - 1) // 3 * 3
    resumed = re.search(rf"continuing from step (\d+) of {STEPS}", again.output())
    assert (int(resumed[1]) if resumed else 0) in {newest, max(newest - 3, 0)}
    assert_as_undisturbed(tmp_path, undisturbed[world_size])


def test_kill_of_everything_at_a_random_moment_continues_bit_equal(
    tmp_path: Path, undisturbed: dict[int, Path]
) -> None:
    document = training(tmp_path, checkpoint__everySteps=1)
    for attempt, step in enumerate((2, 6, 9)):
        gang = start(tmp_path, document, 2, attempt=attempt)
        gang.wait_for_step(step)
        gang.kill()
    final = run(tmp_path, document, 2, attempt=3)
    assert final.codes == [0, 0], final.outputs()
    assert losses(tmp_path) == losses(undisturbed[2])
    assert consumed(tmp_path) == consumed(undisturbed[2])


@pytest.mark.parametrize("who", ["0", "1", "all"])
def test_sigterm_stops_all_ranks_after_the_same_step(
    tmp_path: Path, undisturbed: dict[int, Path], who: str
) -> None:
    document = training(tmp_path)
    gang = run(tmp_path, document, 2, fault=f"term:{who}:5")
    assert gang.codes == [143, 143], gang.outputs()
    assert max(losses(tmp_path)) == 5
    assert checkpoints(tmp_path)[-1] == "step-00000005"
    assert (gang.status / "stopped.json").exists()
    again = run(tmp_path, document, 2, attempt=1)
    assert again.codes == [0, 0], again.outputs()
    assert f"continuing from step 5 of {STEPS}" in again.output()
    assert_as_undisturbed(tmp_path, undisturbed[2])


def test_sigterm_before_the_first_step_stops_without_a_checkpoint(tmp_path: Path) -> None:
    gang = start(tmp_path, training(tmp_path), 2)
    time.sleep(3)  # somewhere in imports and loading
    for process in gang.processes:
        process.send_signal(signal.SIGTERM)
    codes = gang.wait()
    # Before our handler the process just dies of it; afterwards it stops in an orderly way.
    assert set(codes) <= {143, -signal.SIGTERM}, gang.outputs()
    assert checkpoints(tmp_path) == []


@pytest.mark.parametrize("harm", ["truncate", "flip", "manifest"])
def test_harmed_checkpoint_is_rejected_by_name_and_the_one_before_used(
    tmp_path: Path, undisturbed: dict[int, Path], harm: str
) -> None:
    document = training(tmp_path, checkpoint__asynchronous=False)
    gang = start(tmp_path, document, 2, fault="kill:0:8")
    gang.processes[0].wait(240)
    gang.kill()
    newest = tmp_path / "checkpoints" / "job" / "step-00000006"
    shard = max(
        (p for p in newest.rglob("*") if p.is_file() and p.name != "manifest.json"),
        key=lambda p: p.stat().st_size,
    )
    if harm == "truncate":
        shard.write_bytes(shard.read_bytes()[:-7])
    elif harm == "flip":
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 1
        shard.write_bytes(content)
    else:
        (newest / "manifest.json").unlink()
    again = run(tmp_path, document, 2, attempt=1)
    assert again.codes == [0, 0], again.outputs()
    assert "step-00000006" in again.output()
    assert f"continuing from step 3 of {STEPS}" in again.output()
    assert_as_undisturbed(tmp_path, undisturbed[2])


def test_another_world_size_continues_with_the_same_batches(tmp_path: Path) -> None:
    document = training(tmp_path, model__dropout=0.0)
    reference = tmp_path / "reference"
    reference.mkdir()
    assert run(reference, training(reference, model__dropout=0.0), 2).codes == [0, 0]
    gang = start(tmp_path, document, 2, fault="kill:1:8")
    gang.processes[1].wait(240)
    gang.kill()
    again = run(tmp_path, document, 3, attempt=1)
    assert again.codes == [0] * 3, again.outputs()
    assert consumed(tmp_path) == consumed(reference)
    expected = losses(reference)
    for step, loss in losses(tmp_path).items():
        assert loss == pytest.approx(expected[step], rel=1e-4)


def test_a_finished_run_started_again_trains_nothing_more(
    tmp_path: Path, undisturbed: dict[int, Path]
) -> None:
    document = training(tmp_path)
    assert run(tmp_path, document, 2).codes == [0, 0]
    again = run(tmp_path, document, 2, attempt=1)
    assert again.codes == [0, 0], again.outputs()
    assert_as_undisturbed(tmp_path, undisturbed[2])


def test_another_run_starts_anew_and_keeps_the_old_checkpoints(tmp_path: Path) -> None:
    document = training(tmp_path, epochs=1)
    assert run(tmp_path, document, 1, run_id="run-a").codes == [0]
    old = checkpoints(tmp_path)
    second = run(tmp_path, document, 1, run_id="run-b")
    assert second.codes == [0], second.outputs()
    assert "continuing" not in second.output()
    archive = tmp_path / "checkpoints" / "job" / "archive" / "run-a"
    assert sorted(p.name for p in archive.glob("step-*")) == old
    assert (archive / "metrics.jsonl").exists()
    assert (archive / "samples").is_dir()


def test_a_harmed_best_checkpoint_is_said_and_the_last_weights_are_exported(tmp_path: Path) -> None:
    # A learning rate that changes nothing makes the first evaluation the best one.
    document = training(
        tmp_path, optimizer__learningRate=1e-12, output={"export": False, "report": False}, epochs=40
    )
    gang = start(tmp_path, document, 2)
    gang.wait_for_step(20)
    best = tmp_path / "checkpoints" / "job" / "step-00000006"
    shard = max(best.glob("*.distcp"), key=lambda path: path.stat().st_size)
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    assert gang.wait() == [0, 0], gang.outputs()
    assert "the checkpoint of the best step 6 cannot be used" in gang.output()
    finished = json.loads((gang.status / "finished.json").read_text())
    assert finished["evaluation"]["step"] == 240


def test_resume_auto_continues_a_run_of_another_id(tmp_path: Path) -> None:
    assert run(tmp_path, training(tmp_path, maxSteps=4), 1, run_id="run-a").codes == [0]
    second = run(tmp_path, training(tmp_path, resume="auto"), 1, run_id="run-b")
    assert second.codes == [0], second.outputs()
    assert "continuing from step 4" in second.output()
    assert sorted(losses(tmp_path)) == list(range(1, STEPS + 1))
