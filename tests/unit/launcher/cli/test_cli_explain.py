"""`ddpk8s explain`: fields by any of their names."""

import json
import subprocess
from collections.abc import Callable

import pytest

from ddpk8s.cli.fields import find_field
from ddpk8s.errors import SpecError
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.paths import format_path
from ddpk8s.spec.schema import json_schema
from ddpk8s.spec.shape import walk
from ddpk8s.spec.topology import Topology

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_field_is_explained(ddpk8s: Run) -> None:
    done = ddpk8s("explain", "spec.topology.nnodes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "FIELD: spec.topology.nnodes <integer, 1 to 4096>\n\n"
        "  Number of nodes; each is one pod.\n"
        "  default: 1\n"
        "  unit: nodes\n"
        "  example: 2\n"
    )


def test_section_is_explained_with_its_fields(ddpk8s: Run) -> None:
    done = ddpk8s("explain", "training.precision")
    assert done.stdout.startswith("FIELD: spec.training.precision <Precision>\n\n  Number formats. ")
    assert (
        "\nFIELDS:\n  type <fp32 | bf16 | fp16>, default fp32\n      Format of the computation.\n"
        in done.stdout
    )


def test_unknown_field_is_told_with_a_suggestion(ddpk8s: Run) -> None:
    done = ddpk8s("explain", "spec.toplogy.nnodes")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: there is no field spec.toplogy.nnodes\n  hint: did you mean `topology`?\n"


def test_json_schema_is_printed_for_all_or_a_section(ddpk8s: Run) -> None:
    assert json.loads(ddpk8s("explain", "--json-schema").stdout) == json_schema()
    assert json.loads(ddpk8s("explain", "topology", "--json-schema").stdout) == json_schema(Topology)
    assert ddpk8s("explain", "nnodes", "--json-schema").returncode == 2


def test_tree_and_json_have_every_field(ddpk8s: Run) -> None:
    names = [path for path, _ in walk(TrainingJob)]
    assert len(ddpk8s("explain", "--recursive").stdout.splitlines()) == len(names) + 1

    def flatten(document: dict[str, object]) -> list[str]:
        below = document.get("fields", [])
        assert isinstance(below, list)
        return [str(document["field"]), *(name for child in below for name in flatten(child))]

    found = flatten(json.loads(ddpk8s("explain", "-o", "json").stdout))
    assert found[1:] == [format_path(path).replace("[0]", "[]") for path in names]


@pytest.mark.parametrize("path", [path for path, _ in walk(TrainingJob)], ids=format_path)
def test_every_field_is_found_by_its_path(path: tuple[str | int, ...]) -> None:
    for written in (
        format_path(path),
        format_path(path).replace("[0]", "[]"),
        format_path(path).replace("[0]", ""),
    ):
        assert find_field(written).path == path


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("training.batch", "spec.training.batch"),
        ("batch", "spec.training.batch"),
        ("TrainingJob.spec", "spec"),
        ("schedule.minRatio", "spec.training.schedule.minRatio"),
        ("storage", "spec.storage"),
        ("labels", None),
        ("name", None),
    ],
)
def test_field_is_found_by_the_end_of_its_path_when_there_is_only_one(written: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(SpecError, match="is in several places: metadata"):
            find_field(written)
    else:
        assert find_field(written).name == name


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("tpology", "did you mean topology"),
        ("spec.storage.pvc", "it is called spec.storage[].persistentVolumeClaim here"),
        ("training.batch.foo", "known here: globalBatch, mode"),
        ("topology.nnodes.x", "spec.topology.nnodes has no fields"),
        ("metadata.nme", "did you mean `name`?"),
        ("spec.nnodes", "it belongs elsewhere: spec.topology.nnodes"),
        ("zzzzzz", "`ddpk8s explain --recursive` lists all fields"),
    ],
)
def test_hint_says_what_was_meant(written: str, hint: str) -> None:
    with pytest.raises(SpecError) as failure:
        find_field(written)
    assert str(failure.value.hint).startswith(hint)


def test_path_that_is_none_is_told() -> None:
    with pytest.raises(SpecError, match="is no path"):
        find_field("a..b")
