"""The JSON schema of the job file, for editors and for the reference."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from ddpk8s.spec.base import Section
from ddpk8s.spec.job import TrainingJob

_DIALECT = GenerateJsonSchema.schema_dialect


def json_schema(section: type[Section] = TrainingJob) -> dict[str, Any]:
    """Return the JSON schema of a section, by default of the whole job file."""
    schema = _tidy(section.model_json_schema(by_alias=True))
    return {"$schema": _DIALECT, "title": section.__name__, **schema}


def _tidy(node: Any, *, names: bool = False) -> Any:
    """Return a schema without the titles that pydantic makes from names, and with closed maps.

    Args:
        node: A part of a schema.
        names: Whether the keys of `node` are names of fields, not words of the schema.
    """
    if isinstance(node, list):
        return [_tidy(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {key: _tidy(value) for key, value in node.items()}
    closed = {"additionalProperties": False} if "patternProperties" in node else {}
    return closed | {
        key: value
        if key in ("default", "examples", "enum", "const")
        else _tidy(value, names=key in ("properties", "$defs", "patternProperties"))
        for key, value in node.items()
        if key != "title"
    }
