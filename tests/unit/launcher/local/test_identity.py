"""Whether a run is continued."""

from typing import Any

import pytest

from ddpk8s.errors import DdpError, SpecError
from ddpk8s.local.identity import choose_run, learned, newest_with_steps
from ddpk8s.spec.job import TrainingJob


def job(image: str = "registry.example/x:1", **training: Any) -> TrainingJob:
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
                    "epochs": 3,
                }
                | training,
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


def test_a_finished_run_is_never_continued_unasked_and_its_archive_is_told() -> None:
    identity = choose_run(record("finished"), job(), "new")
    assert (identity.run_id, identity.continued) == ("new", False)
    assert identity.lines == (
        "run old finished at step 120: this is a new run, new; "
        "its model, report, metrics and checkpoints are moved to archive/old/",
    )
    assert choose_run(record("finished"), job(), "new", resume=True).run_id == "old"


def test_a_changed_training_is_refused_until_the_user_chooses_when_something_was_learned() -> None:
    changed = job(seed=7)
    with pytest.raises(SpecError) as refusal:
        choose_run(record("stopped"), changed, "new")
    assert refusal.value.message.splitlines() == [
        "run old was stopped at step 120, but the job has changed since:",
        "  spec.training.seed: 42 -> 7",
    ]
    assert refusal.value.hint == (
        "`--resume` goes on with run old from step 120 with the settings as they are now, "
        "`--fresh` starts anew (checkpoints of the old run are moved to archive/, never deleted)"
    )
    assert choose_run(record("stopped"), changed, "new", resume=True).run_id == "old"
    assert choose_run(record("stopped"), changed, "new", fresh=True).run_id == "new"


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 5},
        {"maxSteps": 500},
        {"checkpoint": {"everySteps": 7}},
        {"evaluation": {"everySteps": 7}},
        {"metrics": {"logEverySteps": 7}},
        {"output": {"report": False}},
        {"nonFinite": {"policy": "skip"}},
        {"resume": "auto"},
        {"data": {"train": "/data/t.jsonl", "cacheDirectory": "/scratch"}},
    ],
)
def test_what_leaves_the_steps_to_come_as_they_are_is_no_change(change: dict[str, Any]) -> None:
    assert choose_run(record("stopped"), job(**change), "new").run_id == "old"


@pytest.mark.parametrize("step", [None, 0])
def test_a_changed_training_needs_no_words_when_nothing_was_learned_yet(step: int | None) -> None:
    identity = choose_run(record("mistake", step=step), job(seed=7), "new")
    assert (identity.run_id, identity.lines) == ("new", ())
    assert choose_run(record("running", step=step), job(seed=7), "new").lines, "a killed run had no last word"


@pytest.mark.parametrize("step", [None, 0])
def test_a_run_that_came_to_nothing_is_passed_over_so_that_its_mistake_can_be_corrected(
    step: int | None,
) -> None:
    typo = record("mistake", step=step) | {"runId": "typo", "before": record("stopped")}
    assert choose_run(newest_with_steps(typo), job(), "new").run_id == "old"
    assert newest_with_steps(typo | {"step": 1})["runId"] == "typo"
    assert newest_with_steps(typo | {"state": "running"})["runId"] == "typo"
    assert newest_with_steps(record("mistake", step=None))["runId"] == "old"


def test_fresh_is_always_new_and_resume_needs_something_to_resume() -> None:
    assert choose_run(record("stopped"), job(), "new", fresh=True).run_id == "new"
    assert choose_run({}, job(), "new").run_id == "new"
    with pytest.raises(DdpError, match="no run of reviews"):
        choose_run({}, job(), "new", resume=True)
