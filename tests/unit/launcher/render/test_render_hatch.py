"""The pod template of the job goes over ours: by name where things have names, as a merge patch elsewhere."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.unit.launcher.render.conftest import Render, container, environment, pods

from ddpk8s.render.merge import MERGE_KEYS, merge, origin
from ddpk8s.render.schema import NEWEST, _definitions
from ddpk8s.render.summary import summary

TEMPLATE = "spec.podTemplate="


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}),
        ({"a": 1, "b": 2}, {"b": None}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "B", "value": "2"}]},
         {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
        ({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "valueFrom": {"x": 1}}]},
         {"env": [{"name": "A", "valueFrom": {"x": 1}}]}),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {"volumes": [{"name": "v", "emptyDir": None, "nfs": {}}]},
         {"volumes": [{"name": "v", "nfs": {}}]}),
        ({"volumeMounts": [{"name": "v", "mountPath": "/a"}]}, {"volumeMounts": [{"name": "v", "mountPath": "/b"}]},
         {"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}, {"key": "a"}]},
         {"tolerations": [{"key": "a"}, {"key": "b"}]}),
        ({}, {"a": {"b": None, "c": [{"d": None}]}}, {"a": {"c": [{}]}}),
    ],
)  # fmt: skip
def test_templates_are_merged(ours: Any, theirs: Any, merged: Any) -> None:
    before = repr(ours)
    assert merge(ours, theirs)[0] == merged
    assert repr(ours) == before


def test_changes_name_what_of_ours_was_replaced() -> None:
    _, changes = merge({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 5, "d": None}}, ("t",))
    assert [(change.path, change.old, change.new) for change in changes] == [
        (("t", "b", "c"), 2, 5),
        (("t", "b", "d"), 3, None),
    ]


def test_place_of_a_mistake_is_found_behind_a_merge() -> None:
    theirs = {"containers": [{"name": "b", "env": [{"name": "X", "valeu": "1"}]}]}
    merged, _ = merge({"containers": [{"name": "a"}, {"name": "b", "env": [{"name": "Y"}]}]}, theirs)
    assert origin(("containers", 1, "env", 1, "valeu"), merged, theirs) == (
        "containers",
        0,
        "env",
        0,
        "valeu",
    )
    assert origin(("containers", 0, "name"), merged, theirs) is None


def test_merge_keys_are_those_of_kubernetes() -> None:
    assert find_spec("kubernetes_validate") is not None
    wanted: dict[str, set[str]] = {}
    for name in ("PodSpec", "Container", "ResourceRequirements"):
        fields = _definitions(NEWEST)[f"io.k8s.api.core.v1.{name}"]["properties"]
        for field, schema in fields.items():
            key = (
                schema.get("x-kubernetes-patch-merge-key")
                or (schema.get("x-kubernetes-list-map-keys") or [None])[0]
            )
            if key:
                wanted.setdefault(field, set()).add(key)
    wanted.pop("imagePullSecrets")  # spec.imagePullSecrets sets them
    assert {field: {key} for field, key in MERGE_KEYS.items()} == wanted


def test_own_fields_reach_the_pod_and_ours_stay(rendered: Render) -> None:
    rendering = rendered(
        TEMPLATE
        + "{metadata: {labels: {cost: a1}}, spec: {runtimeClassName: nvidia, securityContext: {fsGroup: 7},"
        " containers: [{name: pytorch, env: [{name: A, value: b}]}, {name: side, image: x}]}}"
    )
    pod = pods(rendering)[0]
    assert pod["metadata"]["labels"]["cost"] == "a1"
    assert pod["metadata"]["labels"]["ddpk8s.dev/job"] == "reviews"
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    assert (pod["spec"]["securityContext"]["fsGroup"], pod["spec"]["securityContext"]["runAsUser"]) == (
        7,
        1000,
    )
    assert [each["name"] for each in pod["spec"]["containers"]] == ["pytorch", "side"]
    assert environment(rendering)["A"] == "b"
    assert container(rendering)["image"] == "registry.example/trainer:1.0"
    assert "  spec.podTemplate.spec.securityContext.fsGroup replaces ours: 1000 -> 7" in summary(rendering)


def test_other_containers_see_no_gpus(rendered: Render) -> None:
    rendering = rendered(
        "spec.resources.gpu=1",
        TEMPLATE + "{spec: {initContainers: [{name: fetch, image: registry.example/fetch}]}}",
    )
    env = pods(rendering)[0]["spec"]["initContainers"][0]["env"]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in env
    assert "NVIDIA_VISIBLE_DEVICES" not in environment(rendering)


def test_a_network_of_the_node_has_no_policy_and_says_so(rendered: Render) -> None:
    rendering = rendered(TEMPLATE + "{spec: {hostNetwork: true}}")
    assert "NetworkPolicy" not in [each["kind"] for each in rendering.objects]
    assert any("no NetworkPolicy protects the pods" in line for line in summary(rendering))


def test_start_in_a_pod_is_a_file_of_the_package() -> None:
    import ddpk8s.render

    assert (Path(ddpk8s.render.__file__).parent / "templates" / "pod_main.py.txt").is_file()
