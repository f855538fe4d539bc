import json

import pytest

from ddpk8s_trainer.metrics.attempts import Gaps, Lost, measure_gaps, measure_lost, read_attempts
from ddpk8s_trainer.metrics.events import Cut


def start(time, run_id="one", resumed=None, **more):
    return {"event": "start", "runId": run_id, "time": time, "resumedStep": resumed} | more


def end(time, reason, step=50):
    return {"event": "end", "time": time, "reason": reason, "step": step}


@pytest.fixture
def attempts(tmp_path):
    def write(*events):
        path = tmp_path / "attempts.jsonl"
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
        return read_attempts(path)

    return write


def test_starts_meet_their_ends_when_read(attempts):
    found = attempts(
        start(100.0),
        start(200.0, resumed=10, lastTime=150.0, lastStep=30),
        end(260.0, "stopped"),
        start(300.0, resumed=50),
    )
    assert [(a.start["time"], a.last_time, a.last_step, a.clean) for a in found] == [
        (100.0, 150.0, 30, False),
        (200.0, 260.0, 50, True),
        (300.0, 300.0, None, False),
    ]


def test_only_the_newest_run_is_read_when_runs_follow_each_other(attempts):
    found = attempts(
        start(1.0), end(2.0, "finished"), start(3.0, "two"), start(4.0, "two"), start(5.0, "two", 7)
    )
    assert [a.start["time"] for a in found] == [3.0, 4.0, 5.0]


def test_both_runs_are_read_when_the_second_resumes_the_first(attempts):
    found = attempts(start(1.0), end(2.0, "finished"), start(3.0, "two", resumed=50))
    assert [a.start["time"] for a in found] == [1.0, 3.0]


def test_no_attempts_when_there_is_no_file(tmp_path):
    assert read_attempts(tmp_path / "attempts.jsonl") == []


NOTHING = Cut(lines=0, last_step=0, last_time=None, reached=None)
KILLED = Cut(lines=3, last_step=40, last_time=140.0, reached=120.0)
SAVED = Cut(lines=0, last_step=50, last_time=148.0, reached=148.0)
LOADING = Cut(lines=0, last_step=20, last_time=120.0, reached=120.0)
BACK = Cut(lines=3, last_step=40, last_time=190.0, reached=110.0)
REJECTED = Cut(lines=3, last_step=50, last_time=148.0, reached=120.0)


@pytest.mark.parametrize(
    ("events", "cut", "run_id", "resumed", "lost"),
    [
        pytest.param([], NOTHING, "one", None, Lost(0, 0.0), id="first"),
        pytest.param([start(100.0)], KILLED, "one", 20, Lost(20, 80.0, 120.0), id="killed"),
        pytest.param([start(100.0)], KILLED, "one", None, Lost(40, 80.0, 120.0), id="killed, reached known"),
        pytest.param([start(90.0)], Cut(4, 40, 140.0, None), "one", None, Lost(40, 110.0, 90.0), id="no checkpoint"),
        pytest.param([start(100.0), end(150.0, "stopped")], SAVED, "one", 50, Lost(0, 0.0), id="stopped"),
        # 120 to 150 was for nothing; from then on nobody wanted it to run.
        pytest.param(
            [start(100.0), end(150.0, "stopped")], REJECTED, "one", 30, Lost(20, 30.0, 120.0), id="stopped, older"
        ),
        # Nobody wanted it from 150 to 160; from then on it failed to start.
        pytest.param(
            [start(100.0), end(150.0, "stopped"), start(160.0, lostSince=None), end(165.0, "DataMistake")],
            SAVED, "one", 50, Lost(0, 42.0, 148.0), id="stopped, then failed",
        ),
        pytest.param([start(100.0), end(150.0, "Failed")], KILLED, "one", 20, Lost(20, 80.0, 120.0), id="failed"),
        pytest.param([start(100.0)], KILLED, "two", None, Lost(0, 0.0), id="another run"),
        pytest.param([start(100.0)], KILLED, "two", 20, Lost(20, 20.0, 120.0), id="another run takes over"),
        pytest.param([start(100.0), end(150.0, "finished")], SAVED, "two", 50, Lost(0, 0.0), id="another run goes on"),
        pytest.param([start(100.0)], NOTHING, "one", 20, Lost(0, 100.0, 100.0), id="no metrics at all"),
        # Killed at step 20 at 120, again while loading: 120 to 180 is on the account of the start at 180.
        pytest.param(
            [start(90.0), start(180.0, lostSeconds=60.0)], LOADING, "one", 20, Lost(0, 20.0, 120.0), id="twice"
        ),
        # Back beyond an earlier restart: 110 to 200, less the 30 from 150 to 180.
        pytest.param(
            [start(90.0), start(180.0, lostSeconds=30.0)], BACK, "one", 10, Lost(30, 60.0, 110.0), id="far back"
        ),
    ],
)  # fmt: skip
def test_the_loss_is_measured_when_a_run_starts_at_200(attempts, events, cut, run_id, resumed, lost):
    assert measure_lost(attempts(*events), cut, run_id, resumed, now=200.0) == lost


def restart(time, since, lost, **more):
    return start(time, resumed=20, lostSince=since, lostSeconds=lost, **more)


@pytest.mark.parametrize(
    ("events", "gaps"),
    [
        pytest.param([start(100.0)], Gaps(0.0, 0.0, 0.0), id="one attempt"),
        # Step 20 was reached at 120, and all was over at 140.
        pytest.param(
            [start(100.0), restart(180.0, 120.0, 60.0, lastTime=140.0)], Gaps(20.0, 40.0, 0.0), id="killed"
        ),
        pytest.param(
            [start(100.0), end(150.0, "stopped"), restart(90_150.0, None, 0.0)],
            Gaps(0.0, 0.0, 90_000.0),
            id="stopped",
        ),
        pytest.param(
            [start(100.0), end(150.0, "stopped"), restart(200.0, 120.0, 30.0)],
            Gaps(30.0, 0.0, 50.0),
            id="stopped, older",
        ),
        # The attempt from 180 to 185 failed before it trained; the next one counts that, too.
        pytest.param(
            [
                start(90.0),
                start(180.0, lostSince=None, lastTime=140.0),
                end(185.0, "DataMistake"),
                restart(200.0, 120.0, 80.0),
            ],
            Gaps(25.0, 55.0, 0.0),
            id="failed while loading",
        ),
        # Back to 110, beyond the restart at 180, which lost 150 to 180.
        pytest.param(
            [
                start(90.0),
                restart(180.0, 150.0, 30.0, lastTime=160.0),
                restart(200.0, 110.0, 60.0, lastTime=190.0),
            ],
            Gaps(60.0, 30.0, 0.0),
            id="far back",
        ),
        pytest.param(
            [start(100.0), start(200.0, "two", 20, lostSince=120.0, lostSeconds=20.0, lastTime=140.0)],
            Gaps(20.0, 0.0, 60.0),
            id="another run takes over",
        ),
    ],
)
def test_the_time_between_attempts_is_told_apart_when_a_run_was_restarted(attempts, events, gaps):
    assert measure_gaps(attempts(*events)) == gaps
