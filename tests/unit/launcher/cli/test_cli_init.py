"""`ddpk8s init`: what it writes is valid, and it destroys nothing."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ddpk8s.cli.starter import read_template, write_starter
from ddpk8s.spec.load import load_job

Run = Callable[..., subprocess.CompletedProcess[str]]
TEMPLATES = ["reviews", "own-script"]
ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("template", TEMPLATES)
def test_file_is_written_valid_and_is_not_overwritten(ddpk8s: Run, tmp_path: Path, template: str) -> None:
    done = ddpk8s("init", "job.yaml", "--template", template)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[0] == "wrote job.yaml"
    assert done.stderr.splitlines()[-1] == "next: ddpk8s validate job.yaml"
    told = 'one JSON object a line, {"text": ..., "label": ...}' in done.stderr
    assert told is (template == "reviews"), "what data the job wants"
    warnings: list[object] = []
    load_job(tmp_path / "job.yaml", warn=warnings.append)
    assert warnings == []

    (tmp_path / "job.yaml").write_text("mine")
    done = ddpk8s("init", "job.yaml", "-t", template)
    assert done.returncode == 2
    assert (
        done.stderr
        == "error: job.yaml: is there already\n  hint: choose another name, or overwrite it by --force\n"
    )
    assert (tmp_path / "job.yaml").read_text() == "mine"

    assert ddpk8s("init", "job.yaml", "-t", template, "--force").returncode == 0
    assert (tmp_path / "job.yaml").read_text() != "mine"


def test_script_of_ones_own_is_left_alone(ddpk8s: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("mine")
    assert ddpk8s("init", "-t", "own-script", "--force").returncode == 0
    assert (tmp_path / "train.py").read_text() == "mine"


def test_file_is_printed_when_it_is_called_dash(ddpk8s: Run, tmp_path: Path) -> None:
    done = ddpk8s("init", "-")
    assert done.stdout == write_starter("reviews", "job.yaml")
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_directory_that_is_not_there_is_told(ddpk8s: Run) -> None:
    done = ddpk8s("init", "nowhere/job.yaml")
    assert done.returncode == 2
    assert done.stderr == "error: nowhere/job.yaml: cannot be written: no such file or directory\n"


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_line_that_is_off_is_valid_when_it_is_on(tmp_path: Path, template: str) -> None:
    lines = write_starter(template, "job.yaml").splitlines()
    (tmp_path / "train.py").write_text("")
    off = [i for i, line in enumerate(lines) if re.match(r" *#\S", line)]
    assert len(off) > 5
    for i in off:
        text = "\n".join(
            line.replace("#", "", 1) if k in family(lines, i) else line for k, line in enumerate(lines)
        )
        if "#path:" in lines[i]:  # instead of the configuration and its tokenizer
            text = re.sub(r"\n      (config|buildTokenizer):(\n        .*)+", "", text)
        (tmp_path / "job.yaml").write_text(text)
        load_job(tmp_path / "job.yaml")


def family(lines: list[str], i: int) -> set[int]:
    """Return the lines that are switched on with line `i`: the sections it is in, as far as off, and what is in it."""
    found, depth = {i}, indent_of(lines[i])
    for k in range(i - 1, 0, -1):
        if re.match(r" *#\S", lines[k]) and indent_of(lines[k]) < depth:
            found.add(k)
            depth = indent_of(lines[k])
        elif re.match(r" *[^# ]", lines[k]):
            break
    for k in range(i + 1, len(lines)):
        if lines[k].strip() and indent_of(lines[k]) <= indent_of(lines[i]):
            break
        if re.match(r" *#\S", lines[k]):
            found.add(k)
    return found


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


@pytest.mark.parametrize("template", TEMPLATES)
def test_lines_are_short_and_comments_come_from_the_model(template: str) -> None:
    text = write_starter(template, "job.yaml")
    assert max(map(len, text.splitlines())) <= 100
    assert "  # Number of nodes; each is one pod. [nodes] Default: 1\n    nnodes: 1\n" in text


def test_script_is_that_of_the_example() -> None:
    assert read_template("train.py.txt") == (ROOT / "k8s/examples/own-script/train.py").read_text()
