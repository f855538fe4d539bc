"""A valid job, and what the loader says when parts of it are changed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ddpk8s.errors import SpecErrors
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.load import load_job
from ddpk8s.spec.problems import LocatedProblem

BASE = """\
apiVersion: ddpk8s.dev/v1alpha1
kind: TrainingJob
metadata:
  name: reviews
spec:
  image: registry.example/trainer:1.0
  storage:
    - {name: data, mountPath: /data, persistentVolumeClaim: data}
    - {name: checkpoints, mountPath: /checkpoints, persistentVolumeClaim: checkpoints}
  training:
    model: {path: bert-base-chinese}
    data: {train: /data/train.jsonl, validation: /data/validation.jsonl}
"""


@dataclass
class Verdict:
    """What was said about a job: messages without their place, and hints by message."""

    job: TrainingJob | None = None
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


@pytest.fixture
def base() -> str:
    """Return the text of a valid job; its last section is `spec.training`, at indent 4."""
    return BASE


@pytest.fixture
def judge(tmp_path: Path) -> Callable[..., Verdict]:
    """Return a function that loads the valid job (or `text`) with `--set` values put in."""

    def run(*sets: str, text: str = BASE) -> Verdict:
        file = tmp_path / "job.yaml"
        file.write_text(text, encoding="utf-8")
        verdict = Verdict()
        said: list[LocatedProblem] = []
        try:
            verdict.job = load_job(file, sets, warn=said.append)
        except SpecErrors as failure:
            verdict.errors = [located.problem.message for located in failure.errors]
            verdict.hints = [located.problem.hint or "" for located in failure.errors]
        verdict.warnings = [located.problem.message for located in said]
        verdict.hints += [located.problem.hint or "" for located in said]
        return verdict

    return run


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that loads a text as `job.yaml` and returns all that is printed: errors, or warnings."""
    monkeypatch.chdir(tmp_path)

    def run(text: str | bytes, *sets: str) -> str:
        content = text.encode() if isinstance(text, str) else text
        Path("job.yaml").write_bytes(content)
        said: list[LocatedProblem] = []
        try:
            load_job("job.yaml", sets, warn=said.append)
        except SpecErrors as failure:
            return str(failure)
        return "\n".join(map(str, said))

    return run
