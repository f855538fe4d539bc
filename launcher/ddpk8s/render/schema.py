"""Kubernetes' own schemas, strictly: no field that a version does not know, no value of another type.

The schemas come from the package kubernetes-validate, as data: its own code takes longer to load than a render
may, and stops at the first mistake.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path as FilePath
from typing import Any

from ddpk8s.render.errors import RenderError
from ddpk8s.render.pytorch_job_schema import PYTORCH_JOB
from ddpk8s.spec.paths import Path
from ddpk8s.spec.values import show

OLDEST = "1.33"
"""First version whose Jobs have all that ours use."""
_NEWEST_FIRST = ("1.37", "1.36", "1.35", "1.34", "1.33")
NEWEST = _NEWEST_FIRST[0]
VERSIONS = tuple(reversed(_NEWEST_FIRST))
_REF = "#/$defs/"
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list,
}  # fmt: skip
_WORDS = {"object": "a mapping", "array": "a list", "string": "text", "boolean": "true or false"}
_OWN = {("kubeflow.org/v1", "PyTorchJob"): PYTORCH_JOB}


@dataclass(frozen=True, slots=True)
class Violation:
    """A part of an object that the schema does not allow; the message goes on after the field's name."""

    path: Path
    message: str
    hint: str | None = None


def check_object(manifest: Mapping[str, Any], version: str = NEWEST) -> list[Violation]:
    """Return all that is wrong with an object, as `apiVersion` and `kind` name it.

    Raises:
        RenderError: there is no schema for such objects.
    """
    return list(_walk(manifest, _schema_of(manifest["apiVersion"], manifest["kind"], version), (), version))


def has_schema(manifest: Mapping[str, Any]) -> bool:
    """Return whether there is a schema for such objects: not for custom resources that a profile brings."""
    group = manifest["apiVersion"].rpartition("/")[0]
    is_kubernetes = "." not in group or group.endswith(".k8s.io")
    return is_kubernetes or (manifest["apiVersion"], manifest["kind"]) in _OWN


def check_definition(value: Any, name: str, version: str = NEWEST) -> list[Violation]:
    """Return all that is wrong with a part of an object, for example `io.k8s.api.core.v1.PodTemplateSpec`."""
    return list(_walk(value, {"$ref": _REF + name}, (), version))


def parts(value: Any, name: str, version: str = NEWEST) -> Iterator[tuple[Path, str, dict[str, Any]]]:
    """Yield every mapping in a part of an object that has a type of its own: its path, type and value."""
    yield from _parts(value, {"$ref": _REF + name}, (), version)


def _parts(
    value: Any, schema: Mapping[str, Any], path: Path, version: str
) -> Iterator[tuple[Path, str, dict[str, Any]]]:
    name, schema = schema.get("$ref", "").partition(_REF)[2], _resolve(schema, version)
    if isinstance(value, dict):
        if name:
            yield path, name, value
        inner = schema.get("additionalProperties")
        for key, item in value.items():
            below = schema.get("properties", {}).get(key) or (inner if isinstance(inner, dict) else {})
            yield from _parts(item, below, (*path, key), version)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _parts(item, schema.get("items", {}), (*path, i), version)


@cache
def _schema_of(api_version: str, kind: str, version: str) -> Mapping[str, Any]:
    if own := _OWN.get((api_version, kind)):
        return own
    group, _, rest = api_version.rpartition("/")
    name = f"{group.partition('.')[0]}-{rest}" if group else rest
    file = _directory(version) / f"{kind.lower()}-{name}.json"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RenderError(f"Kubernetes {version} has no {kind} of {api_version}") from None
    schema: Mapping[str, Any] = json.loads(text)
    return schema


@cache
def _definitions(version: str) -> Mapping[str, Any]:
    text = (_directory(version) / "_definitions.json").read_text(encoding="utf-8")
    definitions: Mapping[str, Any] = json.loads(text)["$defs"]
    return definitions


def _directory(version: str) -> FilePath:
    found = find_spec("kubernetes_validate")
    if found is None or not found.submodule_search_locations:
        raise RenderError(
            "the package kubernetes-validate is not installed", "pip install kubernetes-validate"
        )
    place = FilePath(found.submodule_search_locations[0]) / "kubernetes-json-schema"
    return place / f"v{version}.0-local-strict"


def _resolve(schema: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target: Mapping[str, Any] = _definitions(version)[reference.partition(_REF)[2]]
    return target


def _walk(value: Any, schema: Mapping[str, Any], path: Path, version: str) -> Iterator[Violation]:
    schema = _resolve(schema, version)
    if choices := schema.get("oneOf"):
        if all(any(True for _ in _walk(value, choice, path, version)) for choice in choices):
            yield Violation(path, f"is {show(value)}, but must be text or a number")
        return
    if wrong := _wrong_type(value, schema.get("type")):
        yield Violation(path, wrong[0], wrong[1])
    elif isinstance(value, dict):
        yield from _walk_object(value, schema, path, version)
    elif isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from _walk(item, schema["items"], (*path, i), version)
    elif value is not None and "enum" in schema and value not in schema["enum"]:
        close = get_close_matches(str(value), schema["enum"], 1)
        yield Violation(
            path,
            f"is {show(value)}, but must be one of {', '.join(schema['enum'])}",
            f"did you mean {close[0]}?" if close else None,
        )


def _walk_object(
    value: Mapping[str, Any], schema: Mapping[str, Any], path: Path, version: str
) -> Iterator[Violation]:
    properties = schema.get("properties", {})
    for key in schema.get("required", ()):
        if value.get(key) is None:
            yield Violation(path, f"has no `{key}`, which is required")
    for key, item in value.items():
        if key in properties:
            yield from _walk(item, properties[key], (*path, key), version)
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from _walk(item, schema["additionalProperties"], (*path, key), version)
        elif schema.get("additionalProperties") is False:
            close = get_close_matches(key, properties, 1)
            yield Violation(
                (*path, key),
                f"is no field that Kubernetes {version} knows here",
                f"did you mean `{close[0]}`?" if close else None,
            )


def _wrong_type(value: Any, types: Any) -> tuple[str, str | None] | None:
    """Return what is wrong with the type of a value, and how to mend it; None if it is right."""
    names = [types] if isinstance(types, str) else list(types or ())
    if not names or (value is None and "null" in names):
        return None
    wanted = [name for name in names if name != "null"]
    for name in wanted:
        if isinstance(value, _TYPES[name]) and not (isinstance(value, bool) and name != "boolean"):
            return None
    hint = None
    if isinstance(value, str) and wanted[0] in ("boolean", "integer"):
        hint = "write it without quotes"
    elif isinstance(value, bool | int | float) and wanted[0] == "string":
        hint = "write it in quotes"
    words = " or ".join(
        _WORDS.get(name, f"an {name}" if name[0] in "aeiou" else f"a {name}") for name in wanted
    )
    return f"is {show(value)}, but must be {words}", hint
