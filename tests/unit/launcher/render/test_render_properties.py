"""What holds for every valid job, whatever is in it."""

import copy
import io
import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tests.unit.launcher.render.conftest import pods
from tests.unit.launcher.render.strategies import NASTY, documents, job_of, texts

from ddpk8s.errors import SpecError
from ddpk8s.render.constants import NAME_LIMIT
from ddpk8s.render.errors import RenderProblems
from ddpk8s.render.manifests import Rendering, render
from ddpk8s.render.schema import OLDEST, check_object, has_schema
from ddpk8s.render.yaml_text import to_yaml
from ddpk8s.spec.document import parse_document
from ddpk8s.spec.names import JOB_NAME_LENGTH

FILES = sorted((Path(__file__).parents[4] / "k8s" / "examples").glob("*.yaml"))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
many = settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
some = settings(max_examples=25, deadline=None, suppress_health_check=SLOW)


def without_archives(rendering: Rendering) -> list[Any]:
    """Return the objects; archives are long, and no reader of YAML is quick."""
    return [
        {**each, "binaryData": {"x": "y"}} if "binaryData" in each else each for each in rendering.objects
    ]


@many
@given(documents())
def test_objects_are_valid_and_the_same_each_time(document: dict[str, Any]) -> None:
    rendering, again = render(job_of(document)), render(job_of(copy.deepcopy(document)))
    assert to_yaml(rendering.objects) == to_yaml(again.objects)
    for manifest in rendering.objects:
        if manifest["kind"] != "ResourceClaimTemplate":
            assert check_object(manifest, OLDEST) == []
        assert len(manifest["metadata"]["name"]) <= NAME_LIMIT
    derived = rendering.backend.derived_names(rendering.context)
    assert all(len(name) <= limit for name, limit in derived.items())
    assert JOB_NAME_LENGTH < NAME_LIMIT


@some
@given(documents())
def test_yaml_is_read_back_equal_by_readers_of_both_versions(document: dict[str, Any]) -> None:
    objects = without_archives(render(job_of(document)))
    text = to_yaml(objects)
    assert list(yaml.load_all(text, yaml.CSafeLoader)) == objects
    assert list(YAML(typ="safe", pure=True).load_all(io.StringIO(text))) == objects


@many
@given(documents())
def test_arguments_and_environment_arrive_as_written(document: dict[str, Any]) -> None:
    rendering = render(job_of(document))
    plan = json.loads(next(each["data"]["agent.json"] for each in rendering.objects if "data" in each))
    assert plan["command"]["args"] == document["spec"]["entrypoint"]["args"]
    for pod in pods(rendering):
        (ours,) = [each for each in pod["spec"]["containers"] if each["name"] == "pytorch"]
        env = {variable["name"]: variable.get("value") for variable in ours["env"]}
        for name, value in document["spec"]["env"].items():
            assert expanded(env[name], env) == value


def expanded(value: str, env: dict[str, Any]) -> str:
    """Return a value as the kubelet gives it to the container."""
    result, i = "", 0
    while i < len(value):
        if value.startswith("$$", i):
            result, i = result + "$", i + 2
        elif value.startswith("$(", i) and ")" in value[i:]:
            end = value.index(")", i)
            name = value[i + 2 : end]
            result, i = result + (env[name] if env.get(name) is not None else value[i : end + 1]), end + 1
        else:
            result, i = result + value[i], i + 1
    return result


@some
@given(documents(), st.randoms(use_true_random=False))
def test_order_in_the_file_does_not_matter(document: dict[str, Any], random: Any) -> None:
    other = copy.deepcopy(document)
    for part in (other["spec"]["storage"], other["spec"]["scheduling"]["tolerations"]):
        random.shuffle(part)
    for section in (other["metadata"]["labels"], other["spec"]["env"]):
        entries = list(section.items())
        random.shuffle(entries)
        section.clear()
        section.update(entries)
    first, second = (render(job_of(each), run_id="run") for each in (document, other))
    assert to_yaml(first.objects) == to_yaml(second.objects)


def shape(value: Any) -> Any:
    """Return the structure of an object: its keys and kinds of values, without the texts."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value).__name__


@some
@given(st.sampled_from(NASTY) | st.just("x" * 100_000 + '"}}\n---\n'))
def test_no_text_changes_the_structure(text: str) -> None:
    def objects(value: str) -> list[Any]:
        document: dict[str, Any] = {
            "apiVersion": "ddpk8s.dev/v1alpha1",
            "kind": "TrainingJob",
            "metadata": {"name": "reviews", "annotations": {"example.com/note": value}},
            "spec": {
                "image": "registry.example/trainer:1.0",
                "env": {"X": value},
                "entrypoint": {"script": "/x.py", "args": [value]},
                "podTemplate": {
                    "spec": {"containers": [{"name": "pytorch", "env": [{"name": "Y", "value": value}]}]}
                },
            },
        }
        rendered = without_archives(render(job_of(document), run_id="run"))
        return list(yaml.load_all(to_yaml(rendered), yaml.CSafeLoader))

    assert [shape(each) for each in objects(text)] == [shape(each) for each in objects("plain")]


ODD = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "1Gi", [], {}, [{}], [None], {"name": "pytorch"}, "a b"]
)
WORDS = st.sampled_from(
    ["name", "env", "value", "image", "spec", "metadata", "labels", "containers", "volumes", "hostNetwork",
     "resources", "limits", "securityContext", "tolerations", "affinity", "ports", "volumeMounts", "initContainers",
     "nvidia.com/gpu"]
)  # fmt: skip
TREES = st.recursive(
    ODD, lambda inner: st.dictionaries(WORDS, inner, max_size=3) | st.lists(inner, max_size=2)
)


EXAMPLES = [parse_document(file.read_text(encoding="utf-8"), file.name).data for file in FILES]


@many
@given(st.sampled_from(EXAMPLES), st.randoms(use_true_random=False), TREES | texts)
def test_no_mutated_example_ends_in_a_traceback(example: dict[str, Any], random: Any, value: Any) -> None:
    document = copy.deepcopy(example)
    places = [(container, key) for container in containers_of(document["spec"]) for key in keys_of(container)]
    container, key = random.choice(places)
    if random.random() < 0.2:
        del container[key]
    else:
        container[key] = value
    try:
        rendering = render(job_of(document))
    except SpecError as failure:
        assert str(failure)  # noqa: PT017 - both ends are fine
        return
    for manifest in rendering.objects:
        assert not has_schema(manifest) or check_object(manifest) == []


def containers_of(value: Any) -> list[Any]:
    """Return every mapping and list in a document that is not empty."""
    if not isinstance(value, dict | list) or not value:
        return []
    items = value.values() if isinstance(value, dict) else value
    return [value, *(inner for item in items for inner in containers_of(item))]


def keys_of(container: Any) -> list[Any]:
    """Return the keys of a mapping, or the indexes of a list."""
    return list(container) if isinstance(container, dict) else list(range(len(container)))


@many
@given(
    st.dictionaries(
        st.sampled_from(["spec", "metadata"]), st.dictionaries(WORDS, TREES, max_size=3), max_size=2
    )
)
def test_no_pod_template_ends_in_a_traceback(template: dict[str, Any]) -> None:
    document = {
        "apiVersion": "ddpk8s.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "reviews"},
        "spec": {"image": "x", "entrypoint": {"script": "/x.py"}},
    }
    job = job_of(document)
    job = job.model_copy(update={"spec": job.spec.model_copy(update={"pod_template": template})})
    try:
        rendering = render(job)
    except RenderProblems as failure:
        assert all(problem.message for problem in failure.problems)  # noqa: PT017 - both ends are fine
        return
    assert all(check_object(each) == [] for each in rendering.objects)
