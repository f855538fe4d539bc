"""SIGKILL at random moments of a save never costs a complete checkpoint."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 20


@pytest.mark.gang
def test_valid_checkpoint_is_found_after_sigkill_at_random_moments(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.trainer.checkpoint_killer", str(tmp_path / "job"), "7", str(ROUNDS)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rounds) == ROUNDS
    complete = 0
    for number, seen in enumerate(rounds):
        assert "found" in seen, done.stderr
        assert seen["found"] >= complete, f"round {number}: step {complete} was complete"
        assert seen["right"], f"round {number}: step {seen['found']} is not what was saved"
        assert seen["rejected"] == []
        complete = max([seen["found"], *(message.get("saved", 0) for message in seen["later"])])
    assert complete > ROUNDS, "the kills came before anything could be saved"
