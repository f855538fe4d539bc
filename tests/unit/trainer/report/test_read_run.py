import json
import math

import numpy as np
import pytest

from ddpk8s_trainer.errors import ConfigurationMistake
from ddpk8s_trainer.report.read import MAX_STEP_LINES, read_run
from ddpk8s_trainer.report.summary import notes, result, span, tiles, wall_time


def test_the_wall_time_adds_up_when_a_run_was_killed_and_stopped(restarted_job):
    run = read_run(restarted_job)
    wall = wall_time(run)
    begin, end = span(run)
    assert wall.total == end - begin
    assert wall.wanted == pytest.approx(sum(part.seconds for part in wall.parts()))
    assert sum(part.share for part in wall.parts()) == pytest.approx(1.0)
    assert wall.evaluation == pytest.approx(3 * 9.0)
    assert wall.saving == 2.0  # said by the end event: nothing was logged after the last save
    assert (wall.down, wall.paused) == (pytest.approx(45.0), pytest.approx(30.0))
    assert wall.repeated + wall.down == pytest.approx(run.attempts[1].start["lostSeconds"])
    # Three starts of 20 s, two ends of 6 s less the last save, and the 2 s of the first save in the background.
    assert wall.rest == pytest.approx(60.0 + 12.0 - 2.0 + 2.0)
    assert wall.training == pytest.approx(run.split.sum() - 27.0)
    assert wall.goodput == pytest.approx(wall.training / (wall.total - 30.0))


def test_goodput_is_the_share_of_steps_that_survived_when_hours_lay_between(sample_job):
    # Killed after step 100, back at step 60, stopped at step 100, a night, and on to step 200.
    job = sample_job().start()
    job.metrics += slow_steps(job, 10, 100)
    job.start(60, down=80)
    job.metrics += slow_steps(job, 70, 100)
    job.end("stopped", 100).start(100, down=40_000)
    job.metrics += slow_steps(job, 110, 200)
    job.end("finished", 200)
    wall = wall_time(read_run(job.save()))
    seconds = {part.name: round(part.seconds, 6) for part in wall.parts()}
    assert seconds == {
        "training that counted": 2000.0,
        "start-up and export": 3 * 20.0 + 2 * 6.0,
        "repeated steps": 400.0,
        "down between attempts": 80.0,
    }
    assert wall.paused == 40_000.0
    assert wall.goodput == pytest.approx(2000.0 / 2552.0)
    tile = next(tile for tile in tiles(read_run(job.directory), wall) if tile.name == "Goodput")
    assert (tile.value, tile.note) == ("78.4 %", "of 42 min 32 s: training that counted")


def slow_steps(job, first, last):
    """Return events of steps that take 10 s each, from now on; each tenth has one."""
    events = []
    for step in range(first, last + 1, 10):
        job.time += 100.0
        events.append(
            {"event": "step", "step": step, "time": job.time, "loss": 0.5, "split": {"forward": 100.0}}
        )
    return events


def test_the_story_is_told_when_a_run_was_killed_and_stopped(restarted_job):
    run = read_run(restarted_job)
    told = " ".join(notes(run))
    assert "started 3 times; steps done again: 160" in told
    assert "rejected the checkpoint step-00000500: size of shard-00001 is 1024, not 40960" in told
    assert "Between a stop and the next start lay 30 s, which goodput does not count." in told
    assert "NaN" not in told
    assert result(run).word == "finished"
    values = {tile.name: tile.value for tile in tiles(run, wall_time(run))}
    assert values["Processes"] == "2, then 3"
    assert values["Accuracy"] == f"{100 * run.best['accuracy']:.1f} %"
    assert values["Training samples"] == "76.8k"


@pytest.mark.parametrize(
    ("reason", "word", "tone"),
    [("finished", "finished", "good"), ("stopped", "stopped", "neutral"), ("NonFiniteLoss", "failed", "bad"),
     (None, "unfinished", "neutral")],
)  # fmt: skip
def test_the_result_is_said_when_an_attempt_ended(sample_job, reason, word, tone):
    job = sample_job().start().steps(10, 50)
    if reason:
        job.end(reason, 50)
    found = result(read_run(job.save()))
    assert (found.word, found.tone) == (word, tone)


def test_nan_steps_are_said_when_the_loss_was_nan(sample_job):
    job = sample_job().start().steps(10, 90).steps(100, 100, loss=math.nan).steps(110, 110, loss=math.inf)
    run = read_run(job.save())
    assert run.nonfinite == [100, 110]
    assert "NaN or infinite at step 100, 110:" in " ".join(notes(run))
    assert np.isnan(run.steps["loss"][9])


def test_lines_of_an_earlier_run_are_left_out_when_a_new_one_began(sample_job):
    job = sample_job().start().steps(10, 50)
    old = list(job.metrics)
    job.start(down=100, runId="other").steps(10, 20)
    job.metrics = old + job.metrics
    run = read_run(job.save())
    assert run.steps["step"].tolist() == [10, 20]
    assert len(run.attempts) == 1


def test_unreadable_lines_are_counted_when_there_are_some(sample_job):
    directory = sample_job().start().steps(10, 30).save()
    with (directory / "metrics.jsonl").open("a") as file:
        file.write('garbage\n{"event": "step", "st')
    run = read_run(directory)
    assert run.unreadable == 1
    assert len(run.steps["step"]) == 3
    assert "1 lines of metrics could not be read." in list(notes(run))


def test_few_lines_are_read_and_sums_hold_when_there_are_very_many(sample_job):
    job = sample_job().start().steps(1, 1000, every=1)
    directory = job.save()
    pattern = [event for event in job.metrics if event["event"] == "step"]
    count = 3 * MAX_STEP_LINES
    with (directory / "metrics.jsonl").open("w") as file:
        for number in range(1, count + 1):
            # The same lines again, with another step; a NaN where a third of the lines would miss it.
            event = pattern[number % 1000] | {"step": number}
            event["loss"] = "NaN" if number == 77_777 else event["loss"]
            file.write(json.dumps(event) + "\n")
        file.write(
            json.dumps({"event": "evaluation", "step": count, "time": job.time, "accuracy": 0.5}) + "\n"
        )
    run = read_run(directory)
    assert len(run.steps["step"]) <= MAX_STEP_LINES
    assert run.nonfinite == [77_777]
    assert len(run.evaluations) == 1
    exact = sum(sum(pattern[number % 1000]["split"].values()) for number in range(1, count + 1))
    assert wall_time(run).training == pytest.approx(exact, rel=0.01)
    assert "one step in 4 was read" in " ".join(notes(run))


def test_a_mistake_is_named_when_the_directory_is_no_job_directory(tmp_path):
    with pytest.raises(ConfigurationMistake, match="is no job directory"):
        read_run(tmp_path)
