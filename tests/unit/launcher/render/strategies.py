"""Jobs that are valid, with values chosen to break a renderer that pastes text together."""

import json
from typing import Any

from hypothesis import strategies as st

from ddpk8s.spec.document import parse_document
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.load import load_document

NASTY = (
    '"}}{{', "{{ 7 * 7 }}", "{% raw %}", "---", "---\n- a", "!!python/object:os.system", "&a *a", "no", "on", "~",
    "1e3", "1e-3", "012", "0x1f", "1_000", "1:30", ".inf", "null", "", " ", "\n", "a\n\n", " a: b # c", "\t", "'",
    "a\\nb", "$(DDPK8S_JOB)", "$$", "$HOME", "`id`", "\u202ereversed", "\U0001f600", "\u2028", "é\u0301", "yes\n",
    "2026-11-30", "=", "<<", "@x", "%y", "- x", "? y", ": z", "x" * 500,
)  # fmt: skip
texts = st.sampled_from(NASTY) | st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), max_size=20
)
env_names = st.from_regex(r"X_[A-Z0-9_]{1,8}", fullmatch=True)
labels = st.dictionaries(
    st.from_regex(r"(example\.com/)?[a-z0-9]([-a-z0-9_.]{0,8}[a-z0-9])?", fullmatch=True),
    st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?)?", fullmatch=True),
    max_size=3,
)
names = st.from_regex(r"[a-z]([-a-z0-9]{0,44}[a-z0-9])?", fullmatch=True)
volume_names = st.from_regex(r"v[a-z0-9]{0,6}", fullmatch=True)
quantities = st.sampled_from(["512Mi", "1.5Gi", "64Gi", "2000M", "1Ti"])
durations = st.sampled_from(["30s", "2m", "1h30m", "24h"])
sources = st.sampled_from(
    [
        {"persistentVolumeClaim": "claim"},
        {"emptyDir": {}},
        {"emptyDir": {"sizeLimit": "10Gi"}},
        {"hostPath": "/mnt/x"},
        {"nfs": {"server": "nfs.example", "path": "/x"}},
        {"configMap": "map"},
        {"secret": "secret"},
        {"ephemeral": {"storage": "5Gi", "storageClassName": "fast"}},
        {"csi": {"driver": "csi.example", "volumeAttributes": {"bucket": "no"}, "secret": "key"}},
    ]
)
tolerations = st.sampled_from(
    [
        {"operator": "Exists"},
        {"key": "dedicated", "value": "training", "effect": "NoSchedule"},
        {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    ]
)
pod_templates = st.sampled_from(
    [
        {},
        {"spec": {"runtimeClassName": "nvidia", "hostNetwork": True}},
        {"metadata": {"annotations": {"a": "no"}}, "spec": {"securityContext": {"runAsUser": 2000}}},
        {"spec": {"containers": [{"name": "pytorch", "env": [{"name": "Y", "value": "012"}]}]}},
        {"spec": {"initContainers": [{"name": "init", "image": "x", "command": ["1e3", "no"]}]}},
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Return the document of a valid job with a script of its own."""
    gpu = draw(st.sampled_from([0, 0, 1, 8]))
    volumes = draw(st.lists(volume_names, max_size=4, unique=True))
    resources = {"gpu": gpu, "memory": "512Gi", "sharedMemory": draw(quantities.filter(lambda q: q != "1Ti"))}
    if gpu and draw(st.booleans()):
        resources["deviceClass"] = "gpu.example.com"
    policy = {
        "maxRestarts": draw(st.integers(0, 9)),
        "activeDeadline": "100h",
        "startDeadline": draw(durations),
    }
    scheduling: dict[str, Any] = {
        "nodeSelector": draw(labels),
        "tolerations": draw(st.lists(tolerations, max_size=3)),
    }
    if draw(st.booleans()):
        scheduling |= {"queue": "team-a", "topologyKey": "example.com/rack", "priorityClass": "high"}
    return {
        "apiVersion": "ddpk8s.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {
            "name": draw(names),
            "labels": draw(labels),
            "annotations": {
                f"example.com/a{i}": text for i, text in enumerate(draw(st.lists(texts, max_size=2)))
            },
        },
        "spec": {
            "backend": draw(st.sampled_from(["IndexedJob", "PyTorchJob"])),
            "image": "registry.example/trainer:1.0",
            "topology": {"nnodes": draw(st.sampled_from([1, 2, 17, 4096]))},
            "resources": resources,
            "env": draw(st.dictionaries(env_names, texts, max_size=4)),
            "secrets": [{"name": "hub", "key": "token", "env": "HF_TOKEN"}] if draw(st.booleans()) else [],
            "networkPolicy": draw(st.booleans()),
            "storage": [{"name": name, "mountPath": f"/mnt/{name}", **draw(sources)} for name in volumes],
            "scheduling": scheduling,
            "failurePolicy": policy,
            "podTemplate": draw(pod_templates),
            "entrypoint": {"script": "/mnt/train.py", "args": draw(st.lists(texts, max_size=4))},
        },
    }


def job_of(document: dict[str, Any]) -> TrainingJob:
    """Return the job in a document, read as from a file."""
    return load_document(parse_document(json.dumps(document), "job.yaml"))
