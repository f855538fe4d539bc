"""Mistakes that are found before anything starts: exit code 78, all of them at once."""

import socket
from pathlib import Path

import pytest

from tests.agent.harness import Job


def test_all_unusable_paths_are_told_at_once_with_field_and_hint(job: Job, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    (tmp_path / "loop").symlink_to("loop")
    job.script("").document["checks"] = {
        "readable": [
            {
                "path": str(tmp_path / "no" / "train.jsonl"),
                "field": "spec.training.data.train",
                "hint": "put it there",
            },
            {"path": str(tmp_path / "*.parquet"), "field": "spec.training.data.validation", "hint": None},
            {"path": str(tmp_path / "loop"), "field": "spec.training.model.path", "hint": None},
            {"path": str(tmp_path / "fi*"), "field": "fine: a glob that matches", "hint": None},
        ],
        "writable": [
            {
                "path": str(tmp_path / "file" / "ckpt"),
                "field": "spec.training.checkpoint.directory",
                "hint": None,
            },
            {"path": str(tmp_path / "new" / "cache"), "field": "fine: it can be made", "hint": None},
        ],
    }
    ended = job.run()
    assert ended.code == 78
    assert ended.err.splitlines() == [
        f"ddpk8s-agent: error: spec.training.data.train: cannot read {tmp_path}/no/train.jsonl: "
        f"no such file or directory ({tmp_path} exists)",
        "ddpk8s-agent:   hint: put it there",
        f"ddpk8s-agent: error: spec.training.data.validation: cannot read {tmp_path}/*.parquet: "
        "no such file or directory",
        f"ddpk8s-agent: error: spec.training.model.path: cannot read {tmp_path}/loop: "
        "Too many levels of symbolic links",
        f"ddpk8s-agent: error: spec.training.checkpoint.directory: cannot write to {tmp_path}/file/ckpt: "
        f"{tmp_path}/file is a file, not a directory",
    ]
    assert ended.word["reason"] == "Mistake"
    assert ended.word["attempt"] is None
    assert not list((tmp_path / "new" / "cache").iterdir()), "the probe is removed"


def test_a_port_somebody_listens_on_names_its_field(job: Job) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        job.script("").document["masterPort"] = taken.getsockname()[1]
        ended = job.run()
    assert ended.code == 78
    assert "spec.topology.masterPort" in ended.err
    assert "another process listens on it" in ended.err


def test_a_port_just_left_behind_in_time_wait_is_no_mistake() -> None:
    from ddpk8s_agent.preflight import bind_problem, free_port

    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # the server's side closes first, so TIME_WAIT stays on its port
        client.recv(1)
        client.close()
    assert bind_problem(port) is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"command": {"script": "no.py", "workingDirectory": "."}},
            "spec.entrypoint.script: no file no.py in .",
        ),
        (
            {"command": {"script": "x.py", "workingDirectory": "/no"}},
            "spec.entrypoint.code: /no is no directory",
        ),
        ({"command": {"module": "no_such_trainer"}}, "no_such_trainer is not installed"),
        ({"checks": {"sharedMemoryBytes": 1 << 60}}, "spec.resources.sharedMemory"),
        ({"checks": {"gpus": 64}}, "spec.resources.gpu is 64, but"),
        ({"nnodes": 2}, "spec.topology.nnodes is 2"),
        ({"progressRegex": "(["}, "spec.failurePolicy.progressRegex"),
        ({"schema": 99}, "has schema 99, this agent reads 1"),
        ({"nprocPerNode": None}, "is not complete"),
    ],
)
def test_a_mistake_is_78_and_says_where(job: Job, change: dict[str, object], text: str) -> None:
    job.script("").document.update(change)
    ended = job.run()
    assert ended.code == 78
    assert text in ended.err
    assert "Traceback" not in ended.err


def test_a_plan_that_is_not_there_or_no_json_is_78(job: Job, tmp_path: Path) -> None:
    job.document = {}
    (tmp_path / "half.json").write_text('{"schema": 1,')
    for name in ("half.json", "none.json"):
        agent = job.start("--plan", str(tmp_path / name))
        ended = job.end(agent)
        assert ended.code == 78
        assert name in ended.err


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("EROFS", "the file system is read-only"),
        ("ENOSPC", "no space left on the device"),
        ("EDQUOT", "the disk quota is used up"),
        ("EACCES", "permission denied for uid"),
        ("EIO", "Input/output error"),
    ],
)
def test_errors_of_a_file_system_are_told_in_words_that_help(number: str, text: str) -> None:
    import errno
    import os

    from ddpk8s_agent.preflight import _explain

    code = getattr(errno, number)
    assert text in _explain(OSError(code, os.strerror(code)), Path("/x"))
