"""The run directory: lock and record, between real processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddpk8s.errors import DdpError
from ddpk8s.local.directory import RunDirectory, make_base


def test_a_second_run_is_refused_and_told_who_runs(tmp_path: Path) -> None:
    script = f"""
import sys, time
from pathlib import Path
from ddpk8s.local.directory import RunDirectory
directory = RunDirectory(Path({str(tmp_path)!r}) / "reviews")
directory.lock({{"runId": "run-7"}})
print("locked", flush=True)
time.sleep(30)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with pytest.raises(DdpError, match=rf"running already .* pid {first.pid}, since .*, run run-7"):
            RunDirectory(tmp_path / "reviews").lock({})
        first.kill()
    RunDirectory(tmp_path / "reviews").lock({})


def test_the_lock_lasts_as_long_as_a_process_that_inherited_it(tmp_path: Path) -> None:
    holder = RunDirectory(tmp_path / "reviews")
    holder.lock({"runId": "r"})
    with subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(30)"], pass_fds=[holder.lock_fd]
    ) as gang:
        (tmp_path / "reviews" / "lock").write_text('{"pid": 2000000000}')  # as if `run` itself were gone
        os.close(holder.lock_fd)
        with pytest.raises(DdpError, match="is still stopping"):
            RunDirectory(tmp_path / "reviews").lock({})
        gang.kill()
    RunDirectory(tmp_path / "reviews").lock({})


def test_a_record_half_written_or_absent_is_no_record(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert directory.read_record() == {}
    (tmp_path / "run.json").write_text('{"runId": "r')
    assert directory.read_record() == {}
    directory.write("run.json", {"runId": "r"})
    assert directory.read_record() == {"runId": "r"}
    assert not list(tmp_path.glob("*.partial"))


def test_git_does_not_see_the_directory_and_a_file_in_its_place_is_told(tmp_path: Path) -> None:
    make_base(tmp_path / ".ddpk8s")
    assert (tmp_path / ".ddpk8s" / ".gitignore").read_text() == "*\n"
    (tmp_path / "file").touch()
    with pytest.raises(DdpError, match="cannot write to"):
        make_base(tmp_path / "file" / ".ddpk8s")
