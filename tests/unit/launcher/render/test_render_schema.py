"""Our reading of Kubernetes' schemas agrees with jsonschema's, and PyTorchJob's is stricter than its CRD."""

import copy
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddpk8s.render.errors import RenderError
from ddpk8s.render.schema import NEWEST, check_object
from ddpk8s.spec.paths import format_path

GOLDEN = Path(__file__).parents[3] / "golden"
JOB: dict[str, Any] = list(
    yaml.safe_load_all((GOLDEN / "reviews.IndexedJob.yaml").read_text(encoding="utf-8"))
)[-1]
PYTORCH: dict[str, Any] = list(
    yaml.safe_load_all((GOLDEN / "cpu-2x2.PyTorchJob.yaml").read_text(encoding="utf-8"))
)[-1]


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path of every node of an object."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def changed(manifest: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """Return an object with the node at `path` replaced."""
    result = copy.deepcopy(manifest)
    container: Any = result
    for part in path[:-1]:
        container = container[part]
    container[path[-1]] = value
    return result


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([path for path in places(JOB) if len(path) > 1 and path[0] == "spec"]),
    st.sampled_from([None, 0, 1.5, "x", True, [], {}, {"unknown": 1}, [None], ["x"], [{}]]),
)
def test_verdict_is_that_of_kubernetes_validate(path: tuple[str | int, ...], value: Any) -> None:
    manifest = changed(JOB, path, value)
    try:
        kubernetes_validate.validate(manifest, NEWEST, strict=True)
        valid = True
    except kubernetes_validate.ValidationError:
        valid = False
    assert (check_object(manifest) == []) == valid


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("spec.pytorchReplicaSpecs.Master.restartPolicy", "Sometimes", None),
        ("spec.runPolicy.cleanPodPolicy", "Nope", None),
        ("spec.nprocPerNode", 8, None),
        ("spec.pytorchReplicaSpecs.Worker.replicas", "2", None),
        ("spec.elasticPolicy", {}, None),
        ("spec.cleanPodPolicy", "Running", None),
        ("spec.pytorchReplicaSpecs.Master.replicas", None, "spec.pytorchReplicaSpecs.Master"),
        ("spec.pytorchReplicaSpecs.Master", None, "spec.pytorchReplicaSpecs"),
        ("spec.pytorchReplicaSpecs.Master.template.spec.containers", [{"nam": "x"}], None),
    ],
)
def test_what_the_operator_would_take_and_stumble_over_is_refused(
    path: str, value: Any, place: str | None
) -> None:
    assert check_object(PYTORCH) == []
    found = check_object(changed(PYTORCH, tuple(path.split(".")), value))
    assert any(format_path(each.path).startswith(place or path) for each in found)


def test_objects_of_unknown_kinds_have_no_schema() -> None:
    with pytest.raises(RenderError, match="has no Jobb of batch/v1"):
        check_object({**JOB, "kind": "Jobb"})
