"""Every example, in every backend, gives the objects that were reviewed."""

import io
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from ruamel.yaml import YAML

from ddpk8s.render.schema import VERSIONS, check_object, has_schema
from tests.golden import DIRECTORY, cases, render_case

CASES = [pytest.param(*case, id=case[0]) for case in cases()]
FILES = [pytest.param(DIRECTORY / f"{name}.yaml", id=name) for name, _, _ in cases()]


@pytest.mark.parametrize(("name", "file", "sets"), CASES)
def test_example_renders_as_reviewed(name: str, file: Path, sets: list[str]) -> None:
    golden = (DIRECTORY / f"{name}.yaml").read_text(encoding="utf-8")
    assert render_case(file, sets) == golden, "`python -m tests.golden` writes it again, if that is meant"


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in DIRECTORY.glob("*.yaml")} == {name for name, _, _ in cases()}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("golden", FILES)
def test_golden_objects_are_valid(golden: Path, version: str) -> None:
    for manifest in yaml.safe_load_all(golden.read_text(encoding="utf-8")):
        if manifest["kind"] == "ResourceClaimTemplate" and version == "1.33":
            continue  # resource.k8s.io/v1 came with 1.34
        if has_schema(manifest):
            assert check_object(manifest, version) == []


@pytest.mark.parametrize("golden", FILES)
def test_golden_objects_are_valid_for_kubernetes_validate(golden: Path) -> None:
    for manifest in yaml.safe_load_all(golden.read_text(encoding="utf-8")):
        if manifest["kind"] == "Job":
            kubernetes_validate.validate(manifest, VERSIONS[0], strict=True)


@pytest.mark.parametrize("golden", FILES)
def test_readers_of_both_versions_of_yaml_agree(golden: Path) -> None:
    text = golden.read_text(encoding="utf-8")
    reader = YAML(typ="safe", pure=True)
    assert list(yaml.safe_load_all(text)) == list(reader.load_all(io.StringIO(text)))
