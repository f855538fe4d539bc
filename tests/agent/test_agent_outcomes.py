"""How an attempt ends, what the agent makes of it, and what it writes meanwhile."""

import json

import pytest

from tests.agent.harness import Job

pytestmark = pytest.mark.gang


def test_workers_that_finish_give_0_and_the_environment_of_the_contract(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PET_NNODES", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    job.document["command"]["args"] = ["--lr", "1e-3"]
    job.document["env"]["MINE"] = "yes"
    job.script("""
        names = ["DDPK8S_JOB", "DDPK8S_RUN_ID", "DDPK8S_ATTEMPT", "MINE", "PET_NNODES", "WORLD_SIZE", "OMP_NUM_THREADS"]
        touch(f"seen-{RANK}.json", json.dumps({
            "env": {name: os.environ.get(name) for name in names}, "args": sys.argv[1:], "cwd": os.getcwd(),
            "status": os.path.isdir(os.environ["DDPK8S_STATUS_DIR"])}))
    """)
    ended = job.run()
    assert ended.code == 0, ended.err
    assert ended.word["reason"] == "Finished"
    for rank in (0, 1):
        seen = json.loads((job.directory / f"seen-{rank}.json").read_text())
        assert int(seen["env"].pop("OMP_NUM_THREADS")) >= 1
        assert seen == {
            "env": {
                "DDPK8S_JOB": "test",
                "DDPK8S_RUN_ID": "run-1",
                "DDPK8S_ATTEMPT": "0",
                "MINE": "yes",
                "PET_NNODES": None,
                "WORLD_SIZE": "2",
            },
            "args": ["--lr", "1e-3"],
            "cwd": str(job.directory),
            "status": True,
        }


def test_output_arrives_whole_by_rank_and_stream_when_it_is_ugly(job: Job) -> None:
    job.script(r"""
        if RANK == 0:
            print('ddpk8s-progress: {"step": 3, "total": 9}')
            print("plain")
            print("z" * 200_000)
            sys.stdout.flush(); sys.stdout.buffer.write(b"bytes \xff\xfe here\n")
            sys.stdout.buffer.write(b"\r 10%\r 50%\r100%\n")
        else:
            print("ddpk8s-progress: of rank 1 is only text")
            print("warning", file=sys.stderr)
        sys.stdout.flush(); sys.stdout.write("no newline at the end")
    """)
    ended = job.run()
    assert ended.code == 0, ended.err
    lines = ended.out.split("\n")
    assert 'ddpk8s-progress: {"step": 3, "total": 9}' in lines
    assert "[rank 0] plain" in lines
    assert sum(line.count("z") for line in lines) == 200_000
    assert "[rank 0] bytes \ufffd\ufffd here" in lines
    assert "[rank 0] 100%" in lines
    assert "[rank 1] ddpk8s-progress: of rank 1 is only text" in lines
    assert "[rank 1] no newline at the end" in lines
    assert ended.err == "[rank 1] warning\n"
    assert ended.word["step"] == 3
    kept = job.state / "attempt-0" / "rank-1.stderr.log"
    assert kept.read_text() == "warning\n"


def test_progress_of_an_own_script_is_found_when_a_regex_is_given(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDPK8S_PROGRESS_SECONDS", "0")
    job.document |= {
        "nprocPerNode": 1,
        "progressRegex": r"step (?P<step>\d+) of (?P<total>\d+), loss (?P<loss>\S+)",
    }
    job.script("""
        for step in (1, 2):
            print(f"step {step} of 2, loss {'nan' if step == 2 else 0.5}", flush=True)
            time.sleep(0.3)
    """)
    ended = job.run()
    assert ended.code == 0, ended.err
    shown = [
        json.loads(line.partition(": ")[2])
        for line in ended.out.split("\n")
        if line.startswith("ddpk8s-progress")
    ]
    assert [(p["step"], p["total"], p["loss"], p["attempt"]) for p in shown] == [
        (1, 2, 0.5, 0),
        (2, 2, "NaN", 0),
    ]
    assert "step 1 of 2, loss 0.5" in ended.out.split("\n"), "with one process, lines have no prefix"


def test_a_typed_mistake_ends_with_78_and_is_said_once_when_all_ranks_make_it(job: Job) -> None:
    job.document["maxRestarts"] = 5
    job.script("""
        error = {"rank": RANK, "reason": "DataMistake", "message": "no column `txt`", "hint": "it is called `text`"}
        Path(os.environ["DDPK8S_STATUS_DIR"], f"rank-{RANK}.error.json").write_text(json.dumps(error))
        sys.exit(78)
    """)
    ended = job.run()
    assert ended.code == 78
    assert ended.err.count("no column `txt`") == 1
    assert "hint: it is called `text`" in ended.err
    assert ended.word["reason"] == "DataMistake"
    assert not (job.state / "attempt-1").exists(), "a mistake is never retried"


def test_a_script_that_misses_a_module_on_all_ranks_is_a_mistake_and_never_retried(job: Job) -> None:
    job.document["maxRestarts"] = 5
    job.script("""
        touch(f"here-{RANK}")
        wait_for("here-0"); wait_for("here-1")
        import a_module_that_nobody_has
    """)
    ended = job.run()
    assert ended.code == 78, ended.err
    assert "error: ModuleNotFoundError: No module named 'a_module_that_nobody_has'" in ended.err
    assert "import a_module_that_nobody_has" in ended.err, "the last lines are shown"
    assert not (job.state / "attempt-1").exists()


def test_an_agreed_stop_of_the_workers_gives_143_when_nobody_asked_the_agent(job: Job) -> None:
    job.document["maxRestarts"] = 5
    job.script("""
        if RANK == 0:
            stopped = {"step": 12, "checkpoint": "/x/step-00000012"}
            Path(os.environ["DDPK8S_STATUS_DIR"], "stopped.json").write_text(json.dumps(stopped))
        sys.exit(143)
    """)
    ended = job.run()
    assert ended.code == 143
    assert ended.word["reason"] == "Stopped"
    assert ended.word["step"] == 12
    assert ended.word["checkpoint"] == "/x/step-00000012"


def test_a_killed_worker_is_charged_and_the_gang_starts_again_when_restarts_are_left(job: Job) -> None:
    job.document["maxRestarts"] = 1
    job.script("""
        print("attempt", ATTEMPT, flush=True)
        if ATTEMPT == 0 and RANK == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if ATTEMPT == 0:
            time.sleep(600)
    """)
    ended = job.run()
    assert ended.code == 0, ended.err
    assert "attempt 0 failed: rank 1" in ended.err
    assert "was killed by SIGKILL" in ended.err
    assert "restart 1 of 1" in ended.err
    assert ended.word["restarts"] == 1
    assert ended.word["attempt"] == 1
    assert "[rank 0] attempt 1" in ended.out


def test_the_job_fails_with_the_cause_when_restarts_are_used_up(job: Job) -> None:
    job.document["maxRestarts"] = 1
    job.script("""
        if RANK == 1:
            raise ValueError(f"bad value {ATTEMPT}")
        time.sleep(600)
    """)
    ended = job.run()
    assert ended.code == 1
    assert "restarts used up: 1 of 1" in ended.err
    assert '  |     raise ValueError(f"bad value {ATTEMPT}")' in ended.err, "the last lines are shown"
    word = ended.word
    assert (word["reason"], word["rank"], word["exitCode"], word["attempt"]) == ("WorkerFailed", 1, 1, 1)
    assert "ValueError: bad value 1" in word["message"]
    assert "Root Cause" not in ended.err, "torchrun's own account is not shown"


def test_the_job_ends_as_no_progress_when_three_attempts_come_no_further(job: Job) -> None:
    job.document |= {"maxRestarts": 9, "nprocPerNode": 1, "progressRegex": r"step (?P<step>\d+)"}
    job.script("sys.exit(3)")
    ended = job.run()
    assert ended.code == 1
    assert ended.word["reason"] == "NoProgress"
    assert ended.word["attempt"] == 2


def test_a_bug_of_the_agent_gives_70_and_a_traceback(job: Job) -> None:
    job.script("").document["command"]["args"] = [1]  # the launcher never writes a number here
    ended = job.run()
    assert ended.code == 70
    assert "Traceback" in ended.err
    assert "bug of the agent" in ended.err
