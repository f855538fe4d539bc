"""Parameters: what they are in a job, and `${name}` in the lines of a profile."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ddpk8s.fabric.model import Line, Profile
from ddpk8s.spec.job import TrainingJob

BUILT_IN = ("gpus", "job", "nnodes")
"""Names that every profile may use: GPUs of a pod, name of the job, number of nodes."""

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

Values = Mapping[str, str | None]


def values_of(profile: Profile, job: TrainingJob) -> dict[str, str | None]:
    """Return every parameter's value: the job's, else by its instance type, else the default, else None."""
    spec = job.spec
    values: dict[str, str | None] = {
        "gpus": str(spec.resources.gpu),
        "job": job.metadata.name,
        "nnodes": str(spec.topology.nnodes),
    }
    known = dict(values)
    instance = spec.scheduling.node_selector.get(INSTANCE_TYPE, "")
    for name, parameter in profile.parameters.items():
        default = None if parameter.default is None else substitute(parameter.default, known)
        typical = parameter.by_instance_type.get(instance)
        default = default if typical is None else typical.value
        values[name] = spec.fabric.parameters.get(name, default)
    return values


def substitute(text: str, values: Values) -> str | None:
    """Return a text with its references replaced; None if one of them has no value."""
    found = [values.get(name) for name in _REFERENCE.findall(text)]
    if any(value is None for value in found):
        return None
    return _REFERENCE.sub(lambda match: values[match[1]] or "", text)


def substitute_in(item: Any, values: Values) -> Any:
    """Return a part of a manifest with all references replaced; None if one of them has no value."""
    if isinstance(item, str):
        return substitute(item, values)
    if isinstance(item, dict):
        pairs = {key: substitute_in(value, values) for key, value in item.items()}
        return None if any(value is None for value in pairs.values()) else pairs
    if isinstance(item, list):
        entries = [substitute_in(entry, values) for entry in item]
        return None if any(entry is None for entry in entries) else entries
    return item


def counts(line: Line, values: Values, nnodes: int) -> bool:
    """Return whether a line counts in a job of that many nodes."""
    if line.when == "multiNode" and nnodes == 1:
        return False
    if line.if_set is not None and values.get(line.if_set) is None:
        return False
    return line.unless_set is None or values.get(line.unless_set) is None


def references(item: Any) -> Iterator[str]:
    """Yield every name that is referred to, anywhere in a text or a part of a manifest."""
    if isinstance(item, str):
        yield from _REFERENCE.findall(item)
    elif isinstance(item, dict):
        for key, value in item.items():
            yield from references(key)
            yield from references(value)
    elif isinstance(item, list):
        for entry in item:
            yield from references(entry)
