"""Whether a run is continued."""

from typing import Any

import pytest

from ddpk8s.errors import DdpError
from ddpk8s.local.identity import choose_run, learned, newest_with_steps
from ddpk8s.spec.job import TrainingJob


def job(epochs: int = 3, image: str = "registry.example/x:1") -> TrainingJob:
    return TrainingJob.model_validate(
        {
            "apiVersion": "ddpk8s.dev/v1alpha1",
            "kind": "TrainingJob",
            "metadata": {"name": "reviews"},
            "spec": {
                "image": image,
                "training": {
                    "model": {"path": "bert-base-chinese"},
                    "data": {"train": "/data/t.jsonl"},
                    "epochs": epochs,
                },
            },
        }
    )


def record(state: str, step: int | None = 120) -> dict[str, Any]:
    return {"runId": "old", "state": state, "step": step, "learned": learned(job())}


@pytest.mark.parametrize("state", ["running", "failed", "stopped", "mistake", "killed"])
def test_what_did_not_finish_is_continued_when_the_training_is_the_same(state: str) -> None:
    identity = choose_run(record(state), job(image="registry.example/other:2"), "new")
    assert (identity.run_id, identity.continued) == ("old", True)
    assert "step 120" in identity.lines[0]


def test_a_finished_run_is_never_continued_unasked() -> None:
    assert choose_run(record("finished"), job(), "new").run_id == "new"
    assert choose_run(record("finished"), job(), "new", resume=True).run_id == "old"


def test_a_changed_training_is_a_new_run_and_says_what_changed() -> None:
    identity = choose_run(record("stopped"), job(epochs=5), "new")
    assert (identity.run_id, identity.continued) == ("new", False)
    assert "  spec.training.epochs: 3 -> 5" in identity.lines
    assert "--resume" in identity.lines[-1]
    assert choose_run(record("stopped"), job(epochs=5), "new", resume=True).run_id == "old"


def test_a_changed_training_needs_no_words_when_nothing_was_learned_yet() -> None:
    identity = choose_run(record("mistake", step=None), job(epochs=5), "new")
    assert (identity.run_id, identity.lines) == ("new", ())
    assert choose_run(record("running", step=None), job(epochs=5), "new").lines, (
        "a killed run had no last word"
    )


def test_a_run_that_came_to_nothing_is_passed_over_so_that_its_mistake_can_be_corrected() -> None:
    typo = record("mistake", step=None) | {"runId": "typo", "before": record("stopped")}
    assert choose_run(newest_with_steps(typo), job(), "new").run_id == "old"
    assert newest_with_steps(typo | {"step": 1})["runId"] == "typo"
    assert newest_with_steps(typo | {"state": "running"})["runId"] == "typo"
    assert newest_with_steps(record("mistake", step=None))["runId"] == "old"


def test_fresh_is_always_new_and_resume_needs_something_to_resume() -> None:
    assert choose_run(record("stopped"), job(), "new", fresh=True).run_id == "new"
    assert choose_run({}, job(), "new").run_id == "new"
    with pytest.raises(DdpError, match="no run of reviews"):
        choose_run({}, job(), "new", resume=True)
