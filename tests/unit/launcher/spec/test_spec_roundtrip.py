"""What is written out is read back equal, for any valid job."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ddpk8s.spec.document import parse_document
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.load import load_document


def load(text: str) -> TrainingJob:
    return load_document(parse_document(text, "job.yaml"))


LABEL = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]) | st.sampled_from("\t\n"), max_size=20
)
DURATION = st.integers(20, 100_000).map(lambda seconds: f"{seconds}s")
SIZE = st.integers(1, 64).map(lambda count: f"{count}Gi")
ENV = st.dictionaries(st.from_regex(r"X[A-Z0-9_]{0,8}", fullmatch=True), TEXT, max_size=3)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return mappings with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


TRAINING = st.fixed_dictionaries(
    {
        "model": st.fixed_dictionaries(
            {"path": LABEL}, optional={"labels": st.just(["no", "yes"]), "dropout": st.floats(0, 0.9)}
        ),
        "data": st.fixed_dictionaries(
            {"train": LABEL.map("/data/{}".format)}, optional={"maxLength": st.integers(4, 512)}
        ),
    },
    optional={
        "batch": some(globalBatch=st.integers(512, 4096), padTo=st.sampled_from(["longest", "maxLength"])),
        "epochs": st.none() | st.integers(1, 9),
        "maxSteps": st.integers(1000, 9000),
        "optimizer": some(learningRate=st.floats(1e-8, 1), maxGradNorm=st.none() | st.floats(0.1, 9)),
        "schedule": some(type=st.sampled_from(["linear", "cosine"]), warmupSteps=st.integers(0, 900)),
        "checkpoint": some(
            interval=st.none() | DURATION, everySteps=st.integers(1, 99), keep=st.integers(1, 9)
        ),
        "precision": some(type=st.sampled_from(["fp32", "bf16", "fp16"])),
        "output": some(export=st.booleans(), report=st.booleans()),
    },
)
SPEC = st.fixed_dictionaries(
    {"image": LABEL.map("registry.example/{}:1".format), "training": TRAINING},
    optional={
        "topology": some(nnodes=st.integers(1, 8), masterPort=st.integers(1024, 65535)),
        "resources": some(gpu=st.integers(0, 8), cpu=st.integers(8, 64), memory=SIZE, guaranteed=st.just(False)),
        "env": ENV,
        "secrets": st.lists(st.just({"name": "wandb", "key": "api-key", "env": "Y"}), max_size=1),
        "storage": st.just([{"name": "data", "mountPath": "/data", "emptyDir": {"sizeLimit": "5Gi"}}]),
        "scheduling": some(queue=LABEL, nodeSelector=st.dictionaries(LABEL, LABEL, max_size=2)),
        "failurePolicy": some(startDeadline=DURATION, ttlAfterFinished=st.none() | DURATION),
        "podTemplate": some(metadata=st.just({"annotations": {"a": "1e3", "b": "no"}})),
    },
)  # fmt: skip
JOB = st.builds(
    lambda name, spec: {
        "apiVersion": "ddpk8s.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": spec,
    },
    LABEL,
    SPEC,
)


def block_yaml(value: Any, indent: str = "") -> str:
    """Return YAML in block style, every text in double quotes."""
    if isinstance(value, dict) and value:
        return "".join(
            f"\n{indent}{json.dumps(key)}: {block_yaml(entry, indent + '  ')}" for key, entry in value.items()
        )
    if isinstance(value, list) and value:
        return "".join(f"\n{indent}- {block_yaml(entry, indent + '  ').lstrip()}" for entry in value)
    return json.dumps(value, ensure_ascii=False)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(JOB)
def test_job_is_equal_when_it_is_written_out_and_read_back(document: dict[str, Any]) -> None:
    job = load(json.dumps(document, ensure_ascii=False))
    written = job.to_document()
    assert load(json.dumps(written)) == job
    assert load(block_yaml(written).lstrip()) == job
    assert TrainingJob.model_validate(written) == job
