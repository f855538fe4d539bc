"""A real API server agrees: it takes every golden object, and refuses what we refuse offline.

Skipped without `KUBECONFIG`; `DDPK8S_KUBECTL` names another kubectl, as in "kube kubectl". Nothing is kept there.
"""

import copy
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ddpk8s.render.pod_rules import check_pod
from ddpk8s.render.schema import NEWEST, check_definition, has_schema
from ddpk8s.render.yaml_text import to_yaml
from tests.golden import DIRECTORY, cases

KUBECTL = shlex.split(os.environ.get("DDPK8S_KUBECTL", "kubectl"))
NAMESPACE = "ddpk8s-golden"
pytestmark = pytest.mark.skipif(
    not os.environ.get("KUBECONFIG") or shutil.which(KUBECTL[0]) is None,
    reason="no cluster: KUBECONFIG is not set, or kubectl is not there",
)
FILES = [pytest.param(DIRECTORY / f"{name}.yaml", id=name) for name, _, _ in cases()]


def kubectl(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run kubectl."""
    return subprocess.run([*KUBECTL, *arguments], input=text, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Any:
    """Make the namespace and the priority class that the examples name."""
    kubectl("create", "namespace", NAMESPACE)
    kubectl("create", "priorityclass", "high", "--value=10")
    yield
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def dry_run(objects: list[Any]) -> subprocess.CompletedProcess[str]:
    """Ask the API server what it would do."""
    placed = [{**each, "metadata": {**each["metadata"], "namespace": NAMESPACE}} for each in objects]
    arguments = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
    return kubectl(*arguments, text=to_yaml(placed))


@pytest.mark.parametrize("golden", FILES)
def test_server_takes_golden_objects(golden: Path) -> None:
    objects = [each for each in yaml.safe_load_all(golden.read_text(encoding="utf-8")) if has_schema(each)]
    for each in objects:
        if "binaryData" in each:
            each["binaryData"] = dict.fromkeys(each["binaryData"], "eA==")
    done = dry_run(objects)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


REFUSED = [
    ("spec.hostNetwork", "true"),
    ("spec.unknown", 1),
    ("spec.dnsPolicy", "Cluster"),
    ("spec.volumes.0", {"name": "Bad_Name", "emptyDir": {}}),
    ("spec.volumes.0", {"name": "two", "emptyDir": {}, "hostPath": {"path": "/x"}}),
    ("spec.volumes.0.name", "another"),
    ("spec.containers.0.image", ""),
    ("spec.containers.0.ports.0.containerPort", 70000),
    ("spec.containers.0.volumeMounts.0.subPath", "../up"),
    ("spec.containers.0.resources.limits.memory", "64GB"),
    ("spec.containers.0.resources.requests.memory", "999Ti"),
    ("spec.containers.0.securityContext.privileged", True),
    ("spec.containers.0.livenessProbe", {"periodSeconds": 5}),
    ("spec.tolerations.0", {"operator": "Exists", "value": "x"}),
    ("spec.tolerations.0", {"key": "x", "tolerationSeconds": 5}),
    ("spec.nodeSelector", {"a b": "c"}),
    ("metadata.labels.team", "a b"),
    ("spec.hostAliases", [{"ip": "nowhere", "hostnames": ["h"]}]),
]


@pytest.mark.parametrize(("place", "value"), REFUSED)
def test_server_refuses_what_is_refused_offline(place: str, value: Any) -> None:
    file = DIRECTORY / "cpu-2x2.IndexedJob.yaml"
    (job,) = [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each["kind"] == "Job"]
    job = copy.deepcopy(job)
    container: Any = job["spec"]["template"]
    *outer, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    for part in outer:
        container = container[part]
    container[last] = value
    template = job["spec"]["template"]
    found = check_definition(template, "io.k8s.api.core.v1.PodTemplateSpec") or list(
        check_pod(template, NEWEST)
    )
    assert found
    assert dry_run([job]).returncode != 0
