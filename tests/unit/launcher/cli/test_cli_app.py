"""The command as a whole: help, usage errors, what it imports, signals and pipes."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from ddpk8s import __version__
from ddpk8s.cli.verbs import VERBS

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_help_lists_the_verbs_and_imports_none_of_them(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "ddpk8s", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    listed = re.findall(r"^  (\w+)  +\w", done.stdout.partition("Commands:")[2], re.MULTILINE)
    assert listed == list(VERBS)
    assert "ddpk8s.cli.verbs" in imported
    heavy = (
        "pydantic",
        "ruamel",
        "rich",
        "kubernetes",
        "torch",
        "ddpk8s.spec",
        *(f"ddpk8s.cli.{verb}" for verb in VERBS),
    )
    assert [name for name in imported if name.startswith(heavy)] == []


@pytest.mark.parametrize("verb", list(VERBS))
def test_verb_has_a_module_with_a_function_of_its_name(verb: str) -> None:
    assert find_spec(f"ddpk8s.cli.{verb}") is not None


@pytest.mark.parametrize("argument", ["version", "--version"])
def test_version_is_printed(ddpk8s: Run, argument: str) -> None:
    done = ddpk8s(argument)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ddpk8s {__version__}\n", "")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "Usage: ddpk8s"),
        (("valdate",), "No such command 'valdate'. Did you mean 'validate'?"),
        (("run",), "give one job file, as in `ddpk8s run job.yaml`"),
        (("validate",), "give a job file, as in `ddpk8s validate job.yaml`"),
        (("validate", "--frobnicate"), "No such option: --frobnicate"),
        (("explain", "-o", "xml"), "'xml'"),
        (("init", "--template", "gpt"), "'gpt'"),
    ],
)
def test_usage_error_exits_2_and_says_so_on_stderr(ddpk8s: Run, args: tuple[str, ...], said: str) -> None:
    done = ddpk8s(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_closed_pipe_is_silent(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "ddpk8s", "explain", "--json-schema"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_interrupt_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ddpk8s", "validate", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        while "ddpk8s" not in Path(f"/proc/{process.pid}/cmdline").read_text():
            time.sleep(0.01)
        _wait_until_it_reads(process.pid)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, said) == (130, "")


def _wait_until_it_reads(pid: int) -> None:
    """Wait until the process blocks in a read of its standard input."""
    for _ in range(3000):
        if "pipe" in Path(f"/proc/{pid}/wchan").read_text():
            return
        time.sleep(0.01)
    pytest.fail("the process does not read its input")


def test_terminal_without_utf_8_is_no_reason_to_fail(ddpk8s: Run, tmp_path: Path) -> None:
    (tmp_path / "é.yaml").write_text("été: 1\n", encoding="utf-8")
    done = ddpk8s("validate", "é.yaml", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 2
    assert r"\xe9" in done.stderr
    assert "Traceback" not in done.stderr
