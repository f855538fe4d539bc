"""Whatever stands in a profile or a pod template: a message, never a traceback."""

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddpk8s.errors import SpecError
from ddpk8s.fabric import additions, check_profile, explain, load_profiles
from ddpk8s.fabric.load import DIRECTORY
from ddpk8s.spec.checks.fabric import check_fabric
from ddpk8s.spec.document import parse_document
from ddpk8s.spec.job import TrainingJob

JUNK: list[Any] = [None, [], {}, "", "a", "${nothing}", 0, -1, True, ["a"], [None], {"a": "b"}, {"item": {}}]
KEYS = st.sampled_from(
    ["containers", "initContainers", "volumes", "name", "pytorch", "env", "resources", "limits", "hostPath",
     "path", "securityContext", "runAsUser", "hostNetwork", "nvidia.com/gpu", "labels", "annotations"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "a", "pytorch", "/dev/infiniband"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in nested dicts and lists."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.parametrize("name", ["gke-tcpxo", "mnnvl", "roce", "oci-hostnet"])
def test_no_value_in_a_profile_ends_in_a_traceback(job: Callable[..., TrainingJob], name: str) -> None:
    text = (DIRECTORY / f"{name}.yaml").read_text(encoding="utf-8")
    parameters = '{resource: rdma/a, networks: "a"}' if name == "roce" else "{}"
    one = job(
        f"spec.fabric={{profileFile: own.yaml, parameters: {parameters}}}",
        f"spec.resources.gpu={4 if name == 'mnnvl' else 8}",
    )
    accepted, refused = 0, []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "own.yaml"
        for i, path in enumerate(places(parse_document(text, name).data)):
            data = parse_document(text, name).data
            data["name"] = "own"
            holder = data
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = JUNK[i % len(JUNK)]
            file.write_text(json.dumps(data), encoding="utf-8")
            try:
                profile = load_profiles(file)[str(data["name"])]
                additions(profile, one)
                explain(profile, one)
                accepted += 1
            except SpecError as failure:
                refused.append(str(failure))
    assert accepted > 0
    assert refused
    assert all(refused)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(template=st.fixed_dictionaries({}, optional={"spec": VALUES, "metadata": VALUES}))
def test_no_pod_template_ends_in_a_traceback(
    with_profile: Callable[..., TrainingJob], template: dict[str, Any]
) -> None:
    job = with_profile("ib-shared")
    spec = job.spec.model_copy(update={"pod_template": template})
    changed = job.model_copy(update={"spec": spec})
    found = [*check_fabric(changed), *check_profile(load_profiles()["ib-shared"], changed)]
    assert all(problem.message for problem in found)
