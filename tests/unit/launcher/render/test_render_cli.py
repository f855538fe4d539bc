"""`ddpk8s render` and `ddpk8s diff`, run as a user runs them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.unit.launcher.render.conftest import BASE


def ddpk8s(directory: Path, *arguments: str, text: str = BASE) -> subprocess.CompletedProcess[str]:
    """Run the command line in a directory with a valid `job.yaml`."""
    (directory / "job.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "ddpk8s", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_objects_go_to_stdout_and_the_summary_to_stderr(tmp_path: Path) -> None:
    done = ddpk8s(tmp_path, "render", "job.yaml")
    assert done.returncode == 0
    assert [each["kind"] for each in yaml.safe_load_all(done.stdout)] == [
        *("ConfigMap", "ConfigMap", "NetworkPolicy", "Service", "Job"),
    ]
    assert "reviews: 2 nodes x 1 process = world size 2, backend IndexedJob, run " in done.stderr
    assert "endpoint: reviews-0.reviews-gang:29400" in done.stderr
    assert "longest name: reviews-gang, 12 of 63 characters" in done.stderr
    assert "fabric cpu-gloo: adds env GLOO_SOCKET_IFNAME" in done.stderr


def test_two_renders_are_the_same_bytes(tmp_path: Path) -> None:
    first, second = (ddpk8s(tmp_path, "render", "job.yaml") for _ in range(2))
    assert first.stdout == second.stdout


def test_json_is_one_list_and_names_are_one_a_line(tmp_path: Path) -> None:
    done = ddpk8s(tmp_path, "render", "-o", "json", "--run-id", "run-7", "-q")
    document = json.loads(done.stdout)
    assert (document["kind"], done.stderr) == ("List", "")
    assert {each["metadata"]["labels"]["ddpk8s.dev/run-id"] for each in document["items"]} == {"run-7"}
    names = ddpk8s(tmp_path, "render", "-o", "name", "--backend", "PyTorchJob").stdout.splitlines()
    assert names[-1] == "pytorchjob/reviews"


def test_explain_names_the_source_of_every_line(tmp_path: Path) -> None:
    done = ddpk8s(tmp_path, "render", "job.yaml", "--explain")
    assert done.stdout.startswith("cpu-gloo: ")
    assert "env GLOO_SOCKET_IFNAME: eth0\n    http" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("render", "job.yaml", "--set", "spec.podTemplate={spec: {hostNetwork: 1}}"),
         "--set spec.podTemplate={spec: {hostNetwork: 1}}: spec.podTemplate.spec.hostNetwork is 1"),
        (("render", "job.yaml", "--backend", "JobSet"), "spec.backend is 'JobSet'"),
        (("render", "job.yaml", "--run-id", "A"), "the run id is 'A', but must be"),
        (("render", "job.yaml", "--kubernetes-version", "1.12"), "1.12 is none of 1.33"),
        (("render", "nowhere.yaml"), "nowhere.yaml: there is no such file"),
        (("diff", "job.yaml", "nowhere.yaml"), "nowhere.yaml: there is no such file"),
    ],
)  # fmt: skip
def test_mistakes_end_with_2_and_no_traceback(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = ddpk8s(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_diff_shows_what_changes_in_the_objects(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(BASE.replace("nnodes: 2", "nnodes: 4"), encoding="utf-8")
    done = ddpk8s(tmp_path, "diff", "job.yaml", "other.yaml")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert {"-  completions: 2", "+  completions: 4"} <= set(lines)
    assert not any("run-id" in line for line in lines if line[0] in "+-")


def test_diff_of_equal_files_is_empty(tmp_path: Path) -> None:
    done = ddpk8s(tmp_path, "diff", "job.yaml", "job.yaml")
    assert (done.returncode, done.stdout) == (0, "")
