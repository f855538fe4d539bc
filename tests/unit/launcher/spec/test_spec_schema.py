"""The JSON schema, the reference and the model's own texts."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ddpk8s.spec.describe import sections
from ddpk8s.spec.document import parse_document
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.load import load_job
from ddpk8s.spec.paths import Path as SpecPath
from ddpk8s.spec.paths import format_path
from ddpk8s.spec.reference import reference_files
from ddpk8s.spec.schema import json_schema
from ddpk8s.spec.shape import SpecField, walk

ROOT = Path(__file__).parents[4]
EXAMPLES = sorted((ROOT / "k8s" / "examples").glob("*.yaml"))
SCHEMA = json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def document_of(example: Path) -> Any:
    return parse_document(example.read_text(), example.name).data


def test_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_schema_accepts_an_example_as_written_and_with_all_defaults(example: Path) -> None:
    assert list(VALIDATOR.iter_errors(document_of(example))) == []
    assert list(VALIDATOR.iter_errors(load_job(example).to_document())) == []


@pytest.mark.parametrize(
    "path", [path for path, _ in sections(TrainingJob)], ids=lambda path: format_path(path) or "root"
)
def test_schema_refuses_an_unknown_key_in_every_section(path: SpecPath) -> None:
    document: dict[str, Any] = {}
    place: Any = document
    for i, part in enumerate(path):
        following = path[i + 1] if i + 1 < len(path) else None
        if isinstance(part, int):
            place.append({})
            place = place[0]
        else:
            place[part] = [] if isinstance(following, int) else {}
            place = place[part]
    place["frobnicate"] = 1
    assert any("frobnicate" in error.message for error in VALIDATOR.iter_errors(document))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("spec.topology.nnodes", 0),
        ("spec.topology.nnodes", "2"),
        ("spec.backend", "Job"),
        ("spec.failurePolicy.gracePeriod", 90),
        ("spec.failurePolicy.gracePeriod", "90"),
        ("spec.resources.memory", "64GB"),
        ("spec.env", {"A-B": "c"}),
        ("spec.env", {"A": 1}),
        ("metadata.name", "Reviews"),
        ("spec.training.precision.type", "bfloat16"),
    ],
)
def test_schema_refuses_what_the_loader_refuses(field: str, value: Any) -> None:
    document = document_of(ROOT / "k8s" / "examples" / "reviews.yaml")
    place = document
    *sections_above, key = field.split(".")
    for part in sections_above:
        place = place.setdefault(part, {})
    place[key] = value
    assert list(VALIDATOR.iter_errors(document)) != []


@pytest.mark.parametrize(
    ("path", "field"), list(walk(TrainingJob)), ids=[format_path(path) for path, _ in walk(TrainingJob)]
)
def test_field_has_its_texts(path: SpecPath, field: SpecField) -> None:
    description = field.info.description or ""
    assert description.endswith(".")
    assert description[0].isupper() or description[0] == "`"
    has_section = field.shape.section is not None or (
        field.shape.item is not None and field.shape.item.section
    )
    if field.info.is_required() and not has_section:
        assert field.info.examples
    if field.shape.name in ("integer", "quantity"):
        assert field.unit or path[-1] in ("seed", "masterPort")


@pytest.mark.parametrize(
    "path", [path for path, field in walk(TrainingJob) if field.info.examples], ids=format_path
)
def test_example_of_a_field_is_valid_by_its_schema(path: SpecPath) -> None:
    field = dict(walk(TrainingJob))[path]
    schema: Any = SCHEMA
    for part in path:
        while "$ref" in schema or "anyOf" in schema:
            schema = (
                schema["anyOf"][0] if "anyOf" in schema else SCHEMA["$defs"][schema["$ref"].split("/")[-1]]
            )
        schema = schema["items"] if isinstance(part, int) else schema["properties"][part]
    whole = {"$defs": SCHEMA["$defs"], **schema}
    for example in field.info.examples or ():
        assert list(Draft202012Validator(whole).iter_errors(example)) == []


def test_reference_is_current() -> None:
    for name, text in reference_files().items():
        written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
        assert written == text, f"docs/reference/{name}: run python -m ddpk8s.spec.reference docs/reference"


def test_reference_links_lead_somewhere() -> None:
    page = reference_files()["spec.md"]
    anchors = {part.partition('"')[0] for part in page.split('<a id="')[1:]}
    links = {part.partition(")")[0] for part in page.split("](#")[1:]}
    assert len(links) > 20
    assert links <= anchors


def test_schema_file_is_the_schema() -> None:
    assert json.loads(reference_files()["trainingjob.schema.json"]) == SCHEMA
