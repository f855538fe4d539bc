"""Volumes, paths in them, the backend's need of one, and the user's own code."""

from collections.abc import Callable
from pathlib import Path

import pytest

Judge = Callable[..., object]
C, E = "spec.training.checkpoint.directory", "spec.entrypoint"
TRAIN = "spec.training={model: {path: a}, data: {train: /data/t}}"


@pytest.mark.parametrize(
    ("sets", "errors"),
    [
        (["spec.storage[2]={name: a, mountPath: /a}"], ["spec.storage[2] has no source, so there is nothing to mount"]),
        (["spec.storage[2]={name: a, mountPath: /a, hostPath: /b, nfs: {server: s, path: /p}}"],
            ["spec.storage[2] has 2 sources (hostPath, nfs), but must have one"]),
        (["spec.storage[2]={name: data, mountPath: /data/, emptyDir: {}}"],
            ["spec.storage[2].name is 'data', as is spec.storage[0].name",
             "spec.storage[2].mountPath is '/data', as is spec.storage[0].mountPath"]),
        (["spec.storage[2]={name: ddpk8s-x, mountPath: /a, emptyDir: {}}"],
            ["spec.storage[2].name is 'ddpk8s-x', but names with ddpk8s- are the launcher's"]),
        (["spec.storage[2]={name: a, mountPath: /dev/shm, emptyDir: {}}"],
            ["spec.storage[2].mountPath is '/dev/shm', where nothing may be mounted"]),
        (["spec.storage[2]={name: a, mountPath: /, emptyDir: {}}"],
            ["spec.storage[2].mountPath is '/', where nothing may be mounted"]),
        (["spec.storage[2]={name: a, mountPath: /a/../b, emptyDir: {}}"],
            ["spec.storage[2].mountPath is '/a/../b', but must not hold `..`"]),
        (["spec.storage[2]={name: a, mountPath: '/a:b', emptyDir: {}}"],
            ["spec.storage[2].mountPath is '/a:b', but must not hold a colon"]),
        (["spec.storage[0].subPath=../x"], ["spec.storage[0].subPath is '../x', but must be a path inside the volume"]),
        (["spec.storage[1].readOnly=true"], [f"{C} is '/checkpoints' but spec.storage[1].readOnly is true"]),
        (["spec.storage[1]={name: c, mountPath: /checkpoints, configMap: c}"],
            [f"{C} is '/checkpoints' but spec.storage[1] cannot be written to"]),
        (["spec.storage[0].readOnly=true", "spec.training.data.cacheDirectory=/data/cache"],
            ["spec.training.data.cacheDirectory is '/data/cache' but spec.storage[0].readOnly is true"]),
        (["spec.backend=PyTorchJob", "spec.storage=[]"],
            ["spec.backend is PyTorchJob, which replaces pods without limit, so it needs "
             f"spec.failurePolicy.activeDeadline or a shared checkpoint volume, and {C} lies in no shared volume"]),
        (["spec.entrypoint={script: /a.py}"],
            ["spec.entrypoint and spec.training are both given, but exclude each other"]),
        (["spec.training=null"], ["spec has neither `training` nor `entrypoint`, so there is nothing to run"]),
    ],
)  # fmt: skip
def test_storage_is_refused_when_it_cannot_work(judge: Judge, sets: list[str], errors: list[str]) -> None:
    assert judge(*sets).errors == errors


@pytest.mark.parametrize(
    ("sets", "warning"),
    [
        (["spec.training.data.train=/other/t"],
            "spec.training.data.train is '/other/t', which lies in no volume of spec.storage"),
        (["spec.training.data.train=/database/t"],
            "spec.training.data.train is '/database/t', which lies in no volume of spec.storage"),
        (["spec.training.data.validation=validation.jsonl"],
            "spec.training.data.validation is 'validation.jsonl', "
            "a relative path, which depends on where processes start"),
        ([f"{C}=/elsewhere"],
            f"{C} is '/elsewhere', in no volume of spec.storage: a pod that is replaced starts from the beginning"),
        (["spec.storage[1]={name: c, mountPath: /checkpoints, emptyDir: {}}", "spec.topology.nnodes=2"],
            f"{C} is '/checkpoints', in spec.storage[1], "
            "a volume of type emptyDir: each node has files of its own there"),
    ],
)  # fmt: skip
def test_path_is_warned_of_when_it_may_not_be_there(judge: Judge, sets: list[str], warning: str) -> None:
    verdict = judge(*sets)
    assert verdict.errors == []
    assert verdict.warnings == [warning]


@pytest.mark.parametrize(
    "sets",
    [
        ["spec.storage[2]={name: cache, mountPath: /data/cache, emptyDir: {}}"],
        [
            "spec.storage[1]={name: c, mountPath: /checkpoints, nfs: {server: s, path: /p}}",
            "spec.topology.nnodes=2",
        ],
        ["spec.backend=PyTorchJob"],
        ["spec.backend=PyTorchJob", f"{C}=/x", "spec.failurePolicy={activeDeadline: 5h, maxRestarts: 0}"],
        [f"{C}=/x", "spec.failurePolicy.maxRestarts=0"],
        ["spec.storage[0].subPath=team/a"],
        ["spec.training.data.train=/data/*.jsonl"],
    ],
)
def test_nothing_is_said_when_paths_lie_in_volumes(judge: Judge, sets: list[str]) -> None:
    verdict = judge(*sets)
    assert (verdict.errors, verdict.warnings) == ([], [])


def test_innermost_volume_holds_a_path(judge: Judge) -> None:
    spec = judge("spec.storage[2]={name: cache, mountPath: /data/cache, emptyDir: {}}").job.spec
    assert spec.volume_of("/data/cache/x").name == "cache"
    assert spec.volume_of("/data/cached").name == "data"
    assert spec.volume_of("/database") is None


@pytest.fixture
def code(tmp_path: Path) -> Path:
    directory = tmp_path / "src"
    directory.mkdir()
    (directory / "train.py").write_text("")
    return directory


@pytest.mark.parametrize(
    ("entrypoint", "error"),
    [
        ("{script: train.sh, code: src}", f"{E}.script is 'train.sh', but must be a Python script"),
        ("{script: /train.py, code: src}", f"{E}.script is '/train.py', but must lie inside {E}.code"),
        ("{script: ../train.py, code: src}", f"{E}.script is '../train.py', but must lie inside {E}.code"),
        ("{script: train.py, code: /src}", f"{E}.code is '/src', but must be relative to the job file"),
        ("{script: train.py}", f"{E}.script is 'train.py', a relative path, but {E}.code is not set"),
        ("{script: train.py, code: other}", f"{E}.code is 'other', but DIR/other is no directory"),
        ("{script: train.py, code: src/train.py}", f"{E}.code is 'src/train.py', but DIR/src/train.py is a file"),
        ("{script: tarin.py, code: src}", f"{E}.script is 'tarin.py', but DIR/src/tarin.py is no file"),
        ("{script: train.py, code: src, args: [1]}", f"{E}.args[0] is 1, but must be text"),
        ("{script: train.py, code: src, args: [--token=hf_0123456789012345678901]}",
            f"{E}.args[0] looks like a secret, and secrets must not stand in the job file"),
        ("{script: '', code: src}", f"{E}.script is empty, but must be text"),
    ],
)  # fmt: skip
def test_script_is_refused_when_it_cannot_run(
    judge: Judge, code: Path, tmp_path: Path, entrypoint: str, error: str
) -> None:
    errors = judge("spec.training=null", f"spec.entrypoint={entrypoint}").errors
    assert error in [text.replace(str(tmp_path), "DIR") for text in errors]


def test_script_may_lie_in_the_image(judge: Judge) -> None:
    verdict = judge("spec.training=null", "spec.entrypoint.script=/app/train.py")
    assert verdict.warnings == [f"{E}.script is '/app/train.py', which lies in no volume of spec.storage"]


@pytest.mark.parametrize(
    ("regex", "error"),
    [
        ("'step ('", "is no Python regular expression: missing ), unterminated subpattern at position 5"),
        ("'(?P<loss>.)'", "has no group named `step`"),
        ("'(?P<step>.)(?P<speed>.)'", "has a group `speed`, but only step, total, epoch, loss, lr are known"),
    ],
)
def test_progress_regex_is_refused_when_it_finds_no_step(
    judge: Judge, code: Path, regex: str, error: str
) -> None:
    entrypoint = "spec.entrypoint={script: train.py, code: src}"
    verdict = judge("spec.training=null", entrypoint, f"spec.failurePolicy.progressRegex={regex}")
    assert verdict.errors == [f"spec.failurePolicy.progressRegex {error}"]
