"""Scalar types with a rule of their own: names, labels, paths and environment variables.

A rule is a function that raises `BadValueError` with the whole sentence a user reads; the field's path is put
before it by the loader. The same rule is in the JSON schema as a pattern, so that editors know it too.
"""

import posixpath
import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from ddpk8s.spec.values import BadValueError, TypeName, show

JOB_NAME_LENGTH = 46
"""Longest job name: every backend makes names of pods and Services from it, of at most 63 characters."""

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_JOB_NAME = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = rf"({_SUBDOMAIN}/)?{_LABEL_PART}"
_LABEL_VALUE = rf"({_LABEL_PART})?"
_ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SECRET_KEY = r"[-._A-Za-z0-9]+"
_IMAGE = r"[a-z0-9]([-a-zA-Z0-9_.:/]*[a-zA-Z0-9])?(@sha256:[0-9a-f]{64})?"
_RESOURCE = rf"{_SUBDOMAIN}/{_LABEL_PART}"
_ABSOLUTE = r"/.*"

# What breaks text on its way through YAML, environment and logs: controls, DEL, C1 and U+FFFE/U+FFFF.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")


def _matching(pattern: str, length: int, rule: str) -> tuple[Callable[[str], str], WithJsonSchema]:
    """Return a validator and its JSON schema for a text that matches `pattern` as a whole."""
    compiled = re.compile(pattern)
    is_lower = pattern in (_LABEL, _JOB_NAME, _SUBDOMAIN)

    def check(value: str) -> str:
        if len(value) > length:
            raise BadValueError(f"is {show(value)}, {len(value)} characters, but may have {length} at most")
        if not compiled.fullmatch(value):
            slug = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")
            hint = f"write for example {slug}" if is_lower and compiled.fullmatch(slug) else None
            raise BadValueError(f"is {show(value)}, but must be {rule}", hint)
        return value

    schema: dict[str, Any] = {"type": "string", "pattern": f"^{pattern}$", "maxLength": length}
    return check, WithJsonSchema(schema)


def _annotated(pattern: str, length: int, rule: str) -> Any:
    check, schema = _matching(pattern, length, rule)
    return Annotated[str, AfterValidator(check), schema]


def _check_absolute_path(value: str) -> str:
    if not value.startswith("/"):
        raise BadValueError(f"is {show(value)}, but must be an absolute path, as in /data")
    if _CONTROL.search(value) or "\n" in value:
        raise BadValueError("holds a control character")
    normal = posixpath.normpath(value).replace("//", "/")
    if ".." in value.split("/"):
        raise BadValueError(f"is {show(value)}, but must not hold `..`")
    if ":" in value:
        raise BadValueError(f"is {show(value)}, but must not hold a colon")
    return normal


def _check_text(value: str) -> str:
    if found := _CONTROL.search(value):
        raise ValueError(
            f"holds the control character U+{ord(found[0]):04X}, which YAML and logs do not carry"
        )
    return value


_LOWER = "lower-case letters, digits and `-`, with a letter or digit at both ends"

JobName = _annotated(
    _JOB_NAME,
    JOB_NAME_LENGTH,
    "lower-case letters, digits and `-`, with a letter first and a letter or digit last",
)
"""Name of a job: a DNS label that starts with a letter, since Services are named after it."""

DnsLabel = _annotated(_LABEL, 63, _LOWER)
"""DNS-1123 label: names of volumes, namespaces and queues."""

ObjectName = _annotated(_SUBDOMAIN, 253, f"{_LOWER}; dots may part such words")
"""DNS-1123 subdomain: names of claims, secrets and classes."""

LabelKey = _annotated(
    _LABEL_KEY,
    317,
    "a Kubernetes label key: letters, digits, `-`, `_` and `.`, perhaps after a prefix, as in "
    "example.com/team",
)
LabelValue = _annotated(
    _LABEL_VALUE,
    63,
    "a Kubernetes label value: letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
)
ResourceName = _annotated(_RESOURCE, 253, "a Kubernetes resource name with its prefix, as in nvidia.com/gpu")
SecretKey = _annotated(_SECRET_KEY, 253, "letters, digits, `-`, `_` and `.`")
EnvName = _annotated(_ENV_NAME, 253, "a name of letters, digits and `_` that does not start with a digit")
Image = _annotated(_IMAGE, 512, "an image reference, as in registry.example/team/trainer:1.0")

Text = Annotated[str, AfterValidator(_check_text)]
"""Text without control characters other than tab and line ends."""

AbsolutePath = Annotated[
    str,
    AfterValidator(_check_absolute_path),
    WithJsonSchema({"type": "string", "pattern": f"^{_ABSOLUTE}$"}),
    TypeName("absolute path"),
]
"""Absolute path in the container, normalized."""
