"""A third backend is one more module: here is one, of bare pods, which no other part knows of."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.launcher.render.strategies import job_of

from ddpk8s.render import manifests
from ddpk8s.render.backends import BACKENDS, Backend, Role
from ddpk8s.render.constants import NAME_LIMIT
from ddpk8s.render.context import Context
from ddpk8s.render.summary import summary


class BarePods:
    """A pod for each node, made by nobody and replaced by nobody."""

    name = "BarePods"
    port_name = "gang"

    def master_address(self, context: Context) -> str:
        return f"{context.name}-0"

    def derived_names(self, context: Context) -> Mapping[str, int]:
        return {f"{context.name}-{context.spec.topology.nnodes - 1}": NAME_LIMIT}

    def roles(self, context: Context) -> tuple[Role, ...]:
        nodes = range(context.spec.topology.nnodes)
        return tuple(Role(str(i), {"name": "DDPK8S_NODE_RANK", "value": str(i)}, 1) for i in nodes)

    def objects(self, context: Context, templates: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**context.metadata(f"{context.name}-{name}"), **template["metadata"]},
                "spec": template["spec"],
            }
            for name, template in templates.items()
        ]

    def restarts(self, _context: Context) -> str:
        return "nobody replaces a pod"

    def notes(self, _context: Context) -> tuple[str, ...]:
        return ()


def test_third_backend_needs_no_other_part_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    backend: Backend = BarePods()
    monkeypatch.setitem(BACKENDS, "BarePods", backend)
    job = job_of(
        {
            "apiVersion": "ddpk8s.dev/v1alpha1",
            "kind": "TrainingJob",
            "metadata": {"name": "bare"},
            "spec": {"image": "x", "topology": {"nnodes": 3}, "entrypoint": {"script": "/x.py"}},
        }
    )
    job = job.model_copy(update={"spec": job.spec.model_copy(update={"backend": "BarePods"})})
    rendering = manifests.render(job)
    found = [each for each in rendering.objects if each["kind"] == "Pod"]
    ranks = [each["spec"]["containers"][0]["env"][0]["value"] for each in found]
    assert ranks == ["0", "1", "2"]
    assert any("restarts: nobody replaces a pod" in line for line in summary(rendering))


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_are_registered_under_their_own_names(name: str) -> None:
    assert BACKENDS[name].name == name
