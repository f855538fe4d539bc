"""The base of every section: frozen, camelCase in YAML, unknown keys refused."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """One section of the specification.

    Frozen, since a spec is a value that many parts read. YAML and JSON use camelCase as Kubernetes does,
    Python uses snake_case; both are accepted on input, so that code may build sections by keyword.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        allow_inf_nan=False,
        strict=True,  # `true` is no number and "8" is no number: YAML has both, and guessing hides mistakes
        defer_build=True,  # building the root builds all of them once; the command starts sooner
        validate_default=True,  # defaults are written as in YAML, for example "10m"
    )

    def to_document(self) -> dict[str, Any]:
        """Return the section as plain JSON values with camelCase keys; read again, equal to it."""
        return self.model_dump(mode="json", by_alias=True)


def field(
    description: str, default: Any = ..., *, unit: str | None = None, example: Any = None, **rules: Any
) -> Any:
    """Return a pydantic field whose texts feed the JSON schema, `ddpk8s explain` and the reference page.

    Args:
        description: One or two sentences: what it is, and what a special value means.
        default: The default; left out, the field is required. A callable becomes a default factory.
        unit: Unit of a number, for example ``samples`` or ``optimizer steps``.
        example: A value as a user would write it in YAML.
        **rules: Passed on to `pydantic.Field` (``ge``, ``le``, ``pattern``, ...).
    """
    extra: dict[str, Any] = {"unit": unit} if unit else {}
    if example is not None:
        rules["examples"] = [example]
    if callable(default):
        rules["default_factory"] = default
    elif default is not ...:
        rules["default"] = default
    return Field(description=description, json_schema_extra=extra or None, **rules)
