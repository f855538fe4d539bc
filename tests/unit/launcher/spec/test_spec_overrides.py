"""`--set PATH=VALUE`."""

from collections.abc import Callable
from datetime import timedelta

import pytest

Report = Callable[..., str]
Judge = Callable[..., object]


def test_set_overrides_adds_and_appends(judge: Callable[..., object]) -> None:
    verdict = judge(
        "spec.topology.nnodes=2",
        "spec.topology.nnodes=4",
        "spec.storage[0].readOnly=true",
        "spec.storage[2]={name: scratch, mountPath: /scratch, emptyDir: {}}",
        "spec.storage.3.name=more",
        "spec.storage.3.mountPath=/more",
        "spec.storage.3.emptyDir={}",
        "spec.scheduling.nodeSelector={a: b, example.com/pool: h100}",
        'spec.scheduling.nodeSelector["example.com/rack"]=r1',
        r"spec.scheduling.nodeSelector.kubernetes\.io/arch=arm64",
        'spec.env.OMP_NUM_THREADS="2"',
        "spec.imagePullSecrets=[regcred]",
        "spec.training.optimizer.learningRate=1e-3",
        "spec.training.checkpoint.interval=null",
        "spec.training.checkpoint.everySteps=5",
        "spec.failurePolicy.gracePeriod=90s",
    )
    assert verdict.errors == []
    spec = verdict.job.spec
    assert spec.topology.nnodes == 4
    assert [volume.name for volume in spec.storage] == ["data", "checkpoints", "scratch", "more"]
    assert spec.storage[0].read_only
    assert spec.scheduling.node_selector == {
        "a": "b",
        "example.com/pool": "h100",
        "example.com/rack": "r1",
        "kubernetes.io/arch": "arm64",
    }
    assert spec.env == {"OMP_NUM_THREADS": "2"}
    assert spec.image_pull_secrets == ["regcred"]
    assert spec.training.optimizer.learning_rate == 1e-3
    assert spec.training.checkpoint.interval is None
    assert spec.failure_policy.grace_period == timedelta(seconds=90)


def test_set_to_nothing_gives_the_default(judge: Callable[..., object]) -> None:
    verdict = judge("spec.topology.nnodes=3", "spec.topology.nnodes=")
    assert verdict.job.spec.topology.nnodes == 1


def test_set_mends_a_mistake_in_the_file(report: Report, base: str) -> None:
    assert report(base + "    epochs: no\n", "spec.training.epochs=3") == ""


def test_set_replaces_a_whole_section_and_its_mistakes(report: Report, base: str) -> None:
    broken = base + "    batch: {globalBatch: no, foo: 1}\n"
    assert report(broken, "spec.training.batch={globalBatch: 32}") == ""


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("spec.topology.nnodes=x", "--set spec.topology.nnodes=x: "
            "spec.topology.nnodes is 'x', but must be a whole number"),
        ("spec.topology.nnode=4", "--set spec.topology.nnode=4: spec.topology.nnode is not a known field\n"
            "  hint: did you mean `nnodes`?"),
        ("nnodes=4", "--set nnodes=4: nnodes is not a known field\n  hint: it belongs elsewhere: spec.topology.nnodes"),
        ("spec.env.FOO=1", '--set spec.env.FOO=1: spec.env.FOO is 1, but must be text\n  hint: quote it: FOO: "1"'),
        ("spec.env.FOO=no", "--set spec.env.FOO=no: spec.env.FOO is no without quotes, "
            "which is text to some readers of YAML and false to others\n"
            '  hint: write "no" in quotes for the text, or false for the boolean'),
        ("spec.env.HF_TOKEN=abc", "--set spec.env.HF_TOKEN=...: spec.env.HF_TOKEN looks like a secret, "
            "and secrets must not stand in the job file\n  hint: put it into a Kubernetes Secret and write under "
            "spec.secrets: {name: SECRET, key: KEY, env: HF_TOKEN}; "
            "with `ddpk8s run` it comes from your own environment"),
        ("spec.topology", "--set spec.topology: must be PATH=VALUE\n"
            "  hint: write for example --set spec.topology.nnodes=4"),
        ("=4", '--set =4: "" is no path; write for example spec.topology.nnodes or spec.storage[0].name'),
        ("spec..a=4", '--set spec..a=4: "spec..a" is no path; '
            "write for example spec.topology.nnodes or spec.storage[0].name"),
        ("spec.image.name=a", "--set spec.image.name=a: "
            "spec.image is 'registry.example/trainer:1.0' and has no fields"),
        ("spec.storage[5].name=a", "--set spec.storage[5].name=a: "
            "spec.storage has 2 entries, so index 5 is out of range\n"
            "  hint: 2 appends"),
        ("spec.storage.data.name=a", "--set spec.storage.data.name=a: "
            "spec.storage is a list, so a number must follow, not 'data'\n  hint: write for example spec.storage[0]"),
        ("spec.storage=[a", "--set spec.storage=[a: this is no valid YAML: "
            "in this bracket a comma or the closing bracket is missing\n"
            "  hint: close the bracket, and put a comma between entries"),
        ("spec.training.data.maxLength=300", None),
    ],
)  # fmt: skip
def test_set_is_told_as_the_place_of_its_mistake(
    report: Report, base: str, given: str, printed: str | None
) -> None:
    assert report(base, given) == (printed or "")


def test_check_is_placed_at_the_set_that_breaks_it(report: Report, base: str) -> None:
    assert report(base, "spec.resources.gpu=4", "spec.topology.nprocPerNode=8") == (
        "--set spec.topology.nprocPerNode=8: spec.topology.nprocPerNode is 8 but spec.resources.gpu is 4\n"
        "  hint: each process needs a GPU: set both to the same number, or leave nprocPerNode out to get 4"
    )


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("spec.env.HF_TOKEN", "--set ...: "),
        ("HF_TOKEN]=s3cret", "--set HF_TOKEN]=...: "),
        ("hf_" + "a1" * 12, "--set ...: "),
        ("a b\nc=d", r"--set a b\nc=d: "),
        ("x=" + "y" * 99, f"--set x={'y' * 75}...: "),
    ],
)
def test_place_is_one_short_line_without_secrets(report: Report, base: str, given: str, place: str) -> None:
    printed = report(base, given)
    assert printed.startswith(place)
    assert "s3cret" not in printed
