"""Signs of life of real gangs: there while work goes on, gone when a rank is stuck, and a stack on request."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.harness import Gang, checkpoints, losses, start, training

pytestmark = pytest.mark.gang

RANKS = (0, 1)
SECONDS = 200


def beat_of(gang: Gang, rank: int) -> dict[str, Any] | None:
    """Return a rank's newest beat, None before the first; a torn or longer one is an error."""
    path = gang.status / f"rank-{rank}.beat"
    content = path.read_bytes() if path.exists() else b""
    if not content:
        return None
    assert len(content) == 64
    assert content.endswith(b"}\n") or content.endswith(b" \n")
    beat: dict[str, Any] = json.loads(content)
    assert set(beat) == {"n", "step", "phase"}
    return beat


def wait_until(gang: Gang, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, gang.outputs()
        assert gang.processes[0].poll() is None, gang.outputs()
        time.sleep(0.002)


def test_all_ranks_beat_in_every_phase_and_a_second_sigterm_changes_nothing(tmp_path: Path) -> None:
    document = training(tmp_path, epochs=10_000, evaluation={"everySteps": 2})
    gang = start(tmp_path, document, 2)
    seen: dict[int, list[dict[str, Any]]] = {rank: [] for rank in RANKS}

    def look() -> bool:
        for rank in RANKS:
            beat = beat_of(gang, rank)
            if beat and (not seen[rank] or beat != seen[rank][-1]):
                seen[rank].append(beat)
        wanted = {"loading", "tokenizing", "training", "evaluating"}
        return all(
            wanted <= {beat["phase"] for beat in beats} and beats[-1]["step"] > 5 for beats in seen.values()
        )

    try:
        wait_until(gang, look)
        for process in gang.processes * 2:
            process.send_signal(signal.SIGTERM)
        assert gang.wait() == [143, 143], gang.outputs()
    finally:
        gang.kill()
    for beats in seen.values():
        counts, steps = [beat["n"] for beat in beats], [beat["step"] for beat in beats]
        assert counts == sorted(set(counts))
        assert steps == sorted(steps)
    last = max(losses(tmp_path))
    assert checkpoints(tmp_path)[-1] == f"step-{last:08d}"
    for rank in RANKS:
        beat = beat_of(gang, rank)
        assert beat is not None
        assert (beat["step"], beat["phase"]) == (last, "saving")


def test_a_gang_falls_silent_and_shows_where_when_a_rank_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")
    document = training(tmp_path, epochs=10_000, data__validation=None, checkpoint__everySteps=10_000)
    gang = start(tmp_path, document, 2)
    try:
        wait_until(gang, lambda: all((beat_of(gang, rank) or {"step": 0})["step"] > 0 for rank in RANKS))
        gang.processes[1].send_signal(signal.SIGSTOP)
        time.sleep(2.0)  # what rank 0 can do without rank 1 is over soon
        before = [beat_of(gang, rank) for rank in RANKS]
        time.sleep(2.0)
        assert [beat_of(gang, rank) for rank in RANKS] == before
        assert all(beat and beat["phase"] == "training" for beat in before)
        for process in gang.processes:
            process.send_signal(signal.SIGABRT)
        gang.processes[1].send_signal(signal.SIGCONT)
        assert gang.wait() == [-signal.SIGABRT, -signal.SIGABRT], gang.outputs()
    finally:
        gang.kill()
    for rank in RANKS:
        assert "Fatal Python error: Aborted" in gang.output(rank)
        assert "ddpk8s_trainer/loop.py" in gang.output(rank)
