"""Fields by themselves: unknown keys, types, bounds, choices; each with the exact text that is printed."""

from collections.abc import Callable

import pytest

from ddpk8s.spec.topology import Topology

Report = Callable[..., str]


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("topologyy: {}", "spec.topologyy is not a known field\n  hint: did you mean `topology`?"),
        ("failure_policy: {}", "spec.failure_policy is not a known field\n"
            "  hint: did you mean `failurePolicy`? Keys are camelCase"),
        ("nnodes: 2", "spec.nnodes is not a known field\n  hint: it belongs elsewhere: spec.topology.nnodes"),
        ("maxLength: 2", "spec.maxLength is not a known field\n"
            "  hint: it belongs elsewhere: spec.training.data.maxLength"),
        ("replicas: 2", "spec.replicas is not a known field\n  hint: it is called spec.topology.nnodes here"),
        ("batch_size: 2", "spec.batch_size is not a known field\n"
            "  hint: it is called spec.training.batch.globalBatch here"),
        ("tokensPerDevise: 2", "spec.tokensPerDevise is not a known field\n"
            "  hint: did you mean spec.training.batch.tokensPerDevice or spec.training.evaluation.tokensPerDevice?"),
        ("fabric: {frobnicate: 1}", "spec.fabric.frobnicate is not a known field\n"
            "  hint: known here: profile, profileFile, parameters"),
    ],
)  # fmt: skip
def test_unknown_key_is_told_with_what_was_meant(report: Report, base: str, line: str, printed: str) -> None:
    column = 3 if not line.startswith("fabric") else 12
    assert report(f"{base}  {line}\n") == f"job.yaml:13:{column}: {printed}"


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ('topology: {nnodes: "2"}', "13:14: spec.topology.nnodes is '2', but must be a whole number\n"
            "  hint: write nnodes: 2, without quotes"),
        ("topology: {nnodes: two}", "13:14: spec.topology.nnodes is 'two', but must be a whole number"),
        ("topology: {nnodes: 2.5}", "13:14: spec.topology.nnodes is 2.5, but must be a whole number"),
        ("topology: {nnodes: 1e2}", "13:14: spec.topology.nnodes is 1e2, but must be a whole number\n"
            "  hint: write nnodes: 100"),
        ("topology: {nnodes: 1_0}", "13:14: spec.topology.nnodes is '1_0', but must be a whole number\n"
            "  hint: write nnodes: 10"),
        ("topology: {nnodes: true}", "13:14: spec.topology.nnodes is true, but must be a whole number"),
        ("topology: {nnodes: 0}", "13:14: spec.topology.nnodes is 0, but must be at least 1 node"),
        ("topology: {nnodes: 5000}", "13:14: spec.topology.nnodes is 5000, but must be at most 4096 nodes"),
        ("topology: 2", "13:3: spec.topology is 2, but must be a mapping\n"
            "  hint: its fields are nnodes, nprocPerNode, masterPort"),
        ("topology:\n    - nnodes: 2", "13:3: spec.topology is a list, but must be a mapping\n"
            "  hint: remove the `- ` in front of its fields"),
        ("env: [A=b]", "13:3: spec.env is a list, but must be a mapping\n"
            "  hint: remove the `- ` in front of its fields"),
        ("imagePullSecrets: regcred", "13:3: spec.imagePullSecrets is 'regcred', but must be a list\n"
            "  hint: write imagePullSecrets: [regcred]"),
        ("secrets: {name: a}", "13:3: spec.secrets is a mapping, but must be a list\n"
            "  hint: begin each entry with `- `"),
        ("imagePullSecrets: [1]", '13:22: spec.imagePullSecrets[0] is 1, but must be text\n  hint: quote it: - "1"'),
        ("resources: {guaranteed: 1}", "13:15: spec.resources.guaranteed is 1, but must be true or false\n"
            "  hint: write guaranteed: true, without quotes"),
        ('resources: {guaranteed: "false"}', "13:15: spec.resources.guaranteed is 'false', but must be true or false\n"
            "  hint: write guaranteed: false, without quotes"),
        ("resources: {memory: 64GB}", "13:15: spec.resources.memory is '64GB', "
            "but must be a Kubernetes quantity, as in 500m, 4, 512Mi or 64Gi\n  hint: write 64Gi"),
        ("resources: {memory: true}", "13:15: spec.resources.memory is true, but must be a quantity\n"
            '  hint: quote it: memory: "true"'),
        ("failurePolicy: {startDeadline: 90}", "13:19: spec.failurePolicy.startDeadline is 90, "
            "but must be a duration: numbers with units (ms, s, m, h), as in 90s or 1h30m\n"
            "  hint: write 90s if you mean seconds"),
        ("backend: Job", "13:3: spec.backend is 'Job', but must be one of IndexedJob, PyTorchJob\n"
            "  hint: did you mean IndexedJob?"),
        ("env: {A-B: c}", "13:9: a key of spec.env is 'A-B', "
            "but must be a name of letters, digits and `_` that does not start with a digit"),
        ("scheduling: {queue: Team_A}", "13:16: spec.scheduling.queue is 'Team_A', "
            "but must be lower-case letters, digits and `-`, with a letter or digit at both ends\n"
            "  hint: write for example team-a"),
        ("secrets: [{name: a, key: b}]", "13:13: spec.secrets[0].env is missing\n"
            "  hint: write for example env: WANDB_API_KEY"),
    ],
)  # fmt: skip
def test_value_is_refused_with_what_was_given_the_rule_and_the_fix(
    report: Report, base: str, line: str, printed: str
) -> None:
    assert report(f"{base}  {line}\n") == f"job.yaml:{printed}"


@pytest.mark.parametrize(
    "line", ["env:", "storage:", "topology:", "podTemplate:", "failurePolicy: {gracePeriod: }"]
)
def test_empty_field_is_an_absent_one(report: Report, base: str, line: str) -> None:
    kept = (
        base.partition("  storage:")[0] + base.partition("  training:")[1] + base.partition("  training:")[2]
    )
    printed = report(f"{kept}  {line}\n")
    assert "warning" in printed or printed == ""
    assert "null" not in printed


def test_required_field_is_told_when_it_is_missing_or_empty(report: Report, base: str) -> None:
    assert report(base.replace("  name: reviews\n", "  name:\n")) == (
        "job.yaml:4:3: metadata.name is empty, but must be given\n  hint: write for example name: reviews"
    )
    assert report(base.replace("  name: reviews\n", "  labels: {}\n")) == (
        "job.yaml:3:1: metadata.name is missing\n  hint: write for example name: reviews"
    )
    assert report(base.replace("metadata:\n  name: reviews\n", "")) == (
        "job.yaml:1:1: metadata is missing\n  hint: `ddpk8s explain metadata` lists its fields"
    )


@pytest.mark.parametrize("name", ["a" * 47, "Reviews", "1st", "a_b", "a.b", "-a", "a-", "ü"])
def test_job_name_is_refused_when_names_made_from_it_would_not_be_legal(
    report: Report, base: str, name: str
) -> None:
    printed = report(base.replace("name: reviews", f"name: {name}"))
    assert printed.startswith("job.yaml:4:3: metadata.name is '")
    assert printed.count("job.yaml") == 1


def test_longest_name_leaves_room_for_what_backends_append(report: Report, base: str) -> None:
    name = "a" * 46
    assert report(base.replace("name: reviews", f"name: {name}")) == ""
    assert len(f"{name}-worker-999") <= 63


def test_secret_is_not_echoed_when_it_stands_where_it_must_not(report: Report, base: str) -> None:
    secret = "hf_" + "a1B2" * 8
    lines = [
        f"  env: {{HF_TOKEN: {secret}, dbPassword: 12345678, WANDB_API_KEY: [s3cr3tvalue]}}",
        f"  backend: {secret}",
        f"  scheduling: {{queue: {secret}}}",
        f"  failurePolicy: {{startDeadline: {secret}}}",
    ]
    printed = report(base + "\n".join(lines) + "\n")
    assert printed.count("job.yaml:") == 6
    for value in (secret, "12345678", "s3cr3tvalue"):
        assert value not in printed


def test_sections_are_built_from_python_by_either_name() -> None:
    assert Topology(nproc_per_node=2) == Topology.model_validate({"nprocPerNode": 2})
