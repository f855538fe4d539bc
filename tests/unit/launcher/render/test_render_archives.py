"""The agent and the user's code in their archives: the same bytes each time, and they run."""

import io
import json
import os
import subprocess
import sys
import zipfile
from base64 import b64decode
from pathlib import Path

import pytest
from tests.unit.launcher.render.conftest import Render, environment, find, pods

from ddpk8s.errors import SpecErrors
from ddpk8s.render.agent_archive import agent_files
from ddpk8s.render.archive import File, digest, pack
from ddpk8s.render.reading import read_source

SCRIPT = """\
apiVersion: ddpk8s.dev/v1alpha1
kind: TrainingJob
metadata: {name: own}
spec:
  image: registry.example/trainer:1.0
  entrypoint: {script: train.py, code: ./src}
"""


def write(root: Path, files: dict[str, str]) -> None:
    """Write files below a directory."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def names_of(root: Path) -> list[str]:
    """Return the files of the job's code below `root`."""
    write(root, {"job.yaml": SCRIPT})
    code = read_source(root / "job.yaml").code
    assert code is not None
    return [file.path for file in code]


def test_archive_is_the_same_whatever_the_order_and_the_dates() -> None:
    files = [File("b.py", False, b"b"), File("a.sh", True, b"#!/bin/sh"), File("c/d.py", False, b"")]
    assert pack(files) == pack(reversed(files))
    with zipfile.ZipFile(io.BytesIO(pack(files))) as archive:
        assert archive.namelist() == ["a.sh", "b.py", "c/d.py"]
        assert [entry.external_attr >> 16 & 0o777 for entry in archive.infolist()] == [0o755, 0o644, 0o644]


@pytest.mark.parametrize(
    "other", [File("b", False, b"a"), File("a", True, b"a"), File("a", False, b"b"), File("aa", False, b"")]
)
def test_hash_differs_with_path_mode_and_content(other: File) -> None:
    assert digest([File("a", False, b"a")]) != digest([other])


def test_agent_is_small_and_its_name_is_its_hash(rendered: Render) -> None:
    (agent,) = [each for each in rendered().objects if "agent.pyz" in each.get("binaryData", {})]
    packed = b64decode(agent["binaryData"]["agent.pyz"])
    assert len(packed) < 200 * 1024
    assert agent["metadata"]["name"] == f"reviews-agent-{digest(agent_files())}"
    assert agent["immutable"] is True
    assert agent["metadata"]["name"] in [
        volume["configMap"]["name"]
        for volume in pods(rendered())[0]["spec"]["volumes"]
        if "configMap" in volume
    ]


def start(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the agent's archive, as a pod would, with a plan that cannot be read."""
    agent = tmp_path / "agent.pyz"
    agent.write_bytes(pack(agent_files()))
    command = [sys.executable, "-I", str(agent), "--plan", str(tmp_path / "plan.json")]
    env = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_agent_starts_from_its_archive_alone(tmp_path: Path) -> None:
    done = start(tmp_path)
    assert done.returncode == 78
    assert "cannot read the plan" in done.stderr


@pytest.mark.parametrize(("index", "rank"), [("0", 1), ("2", 3)])
def test_worker_is_the_node_after_the_master(tmp_path: Path, rendered: Render, index: str, rank: int) -> None:
    # A rank that is none of the gang's is refused by name, which shows what the agent took it for.
    plan = json.loads(next(each["data"]["agent.json"] for each in rendered().objects if "data" in each))
    plan |= {"nnodes": 1, "stateDirectory": str(tmp_path / "state"), "terminationMessagePath": None}
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    done = start(tmp_path, DDPK8S_WORKER_INDEX=index)
    assert done.returncode == 78
    assert f"this is node rank {rank}, counted from 0" in done.stderr


def test_code_is_unpacked_where_the_agent_looks_for_it(tmp_path: Path) -> None:
    files = [File("train.py", False, b"print(1)"), File("tools/run.sh", True, b"#!/bin/sh\n")]
    archive, directory = tmp_path / "code.zip", tmp_path / "code"
    archive.write_bytes(pack(files))
    start(tmp_path, DDPK8S_CODE_ARCHIVE=str(archive), DDPK8S_CODE_DIRECTORY=str(directory))
    assert (directory / "train.py").read_bytes() == b"print(1)"
    assert os.access(directory / "tools" / "run.sh", os.X_OK)
    assert not os.access(directory / "train.py", os.X_OK)


def test_code_that_cannot_be_unpacked_is_said(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    archive.write_bytes(b"no archive")
    done = start(tmp_path, DDPK8S_CODE_ARCHIVE=str(archive), DDPK8S_CODE_DIRECTORY=str(tmp_path / "code"))
    assert done.returncode == 1
    assert "cannot unpack the code" in done.stderr
    assert "Traceback" not in done.stderr


def test_code_reaches_the_pod_under_a_name_that_is_its_hash(tmp_path: Path) -> None:
    write(tmp_path, {"job.yaml": SCRIPT, "src/train.py": "print(1)\n", "src/.gitignore": "data\n"})
    first = read_source(tmp_path / "job.yaml").render("run")
    (code,) = [each for each in first.objects if "code.zip" in each.get("binaryData", {})]
    env = environment(first)
    assert env["DDPK8S_CODE_ARCHIVE"] == "/opt/ddpk8s/archive/code.zip"
    plan = json.loads(next(each["data"]["agent.json"] for each in first.objects if "data" in each))
    assert plan["command"]["workingDirectory"] == env["DDPK8S_CODE_DIRECTORY"]
    write(tmp_path, {"src/train.py": "print(2)\n"})
    second = read_source(tmp_path / "job.yaml").render("run")
    assert code["metadata"]["name"] not in [each["metadata"]["name"] for each in second.objects]
    assert find(first, "Job") != find(second, "Job")


def test_ignored_files_stay_behind(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".git/HEAD": "",
            ".gitignore": "*.log\n/src/secret.py\n",
            "src/train.py": "",
            "src/secret.py": "",
            "src/a.log": "",
            "src/deep/.gitignore": "*\n!keep.py\n!.gitignore\n",
            "src/deep/keep.py": "",
            "src/deep/lost.py": "",
            "src/__pycache__/x.pyc": "",
        },
    )
    assert names_of(tmp_path) == ["deep/.gitignore", "deep/keep.py", "train.py"]


def test_links_to_folders_do_not_run_in_circles(tmp_path: Path) -> None:
    write(tmp_path, {"src/train.py": "", "shared/util.py": ""})
    (tmp_path / "src" / "lib").symlink_to(tmp_path / "shared")
    (tmp_path / "src" / "again").symlink_to(tmp_path / "src")
    assert names_of(tmp_path) == ["lib/util.py", "train.py"]


def test_code_larger_than_a_config_map_is_refused_with_what_is_large(tmp_path: Path) -> None:
    write(tmp_path, {"src/train.py": ""})
    (tmp_path / "src" / "weights.bin").write_bytes(os.urandom(1024 * 1024))
    with pytest.raises(SpecErrors) as failure:
        names_of(tmp_path)
    said = str(failure.value)
    assert "job.yaml:6:34: spec.entrypoint.code is " in said
    assert "900Ki is the most that a ConfigMap carries; the largest are weights.bin (1Mi)" in said
    assert "hint: put large files on a volume of spec.storage or into the image" in said


def test_script_that_is_ignored_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"src/train.py": "", "src/.gitignore": "train.py\n"})
    with pytest.raises(SpecErrors, match=r"leaves out train\.py, the script itself"):
        names_of(tmp_path)
