"""The pod template of the job, merged over ours: lists of named things by name, all else as JSON merge patch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddpk8s.spec.paths import Path

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "evictionResponders": "name",
    "resourceClaims": "name",
    "claims": "name",
    "schedulingGates": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
"""Lists whose entries are merged, and what names an entry: Kubernetes' own strategic merge keys."""
APPENDED = frozenset(("tolerations",))
"""Lists to which entries are added: replacing ours would undo what other fields of the job file say."""


@dataclass(frozen=True, slots=True)
class Change:
    """A value that the pod template replaces or removes (`new` is None)."""

    path: Path
    old: Any
    new: Any


def merge(base: Any, patch: Any, path: Path = ()) -> tuple[Any, list[Change]]:
    """Return `base` with `patch` merged in, and which of its values were replaced.

    Args:
        base: Ours. It is not changed.
        patch: Theirs. A null removes a field.
        path: Where `patch` stands in the job file.
    """
    changes: list[Change] = []
    return _merge(base, patch, path, changes), changes


def _merge(base: Any, patch: Any, path: Path, changes: list[Change]) -> Any:
    if isinstance(base, dict) and isinstance(patch, dict):
        return _merge_mappings(base, patch, path, changes)
    if isinstance(base, list) and isinstance(patch, list) and path:
        key = MERGE_KEYS.get(str(path[-1]))
        if key is not None:
            return _merge_lists(base, patch, path, key, changes)
        if path[-1] in APPENDED:
            return base + [entry for entry in patch if entry not in base]
    if base != patch:
        changes.append(Change(path, base, patch))
    return without_nulls(patch)


def _merge_mappings(
    base: Mapping[str, Any], patch: Mapping[str, Any], path: Path, changes: list[Change]
) -> dict[str, Any]:
    result = dict(base)
    for key, value in patch.items():
        here = (*path, key)
        if value is None:
            if key in result:
                changes.append(Change(here, result.pop(key), None))
        elif key in result:
            result[key] = _merge(result[key], value, here, changes)
        else:
            result[key] = without_nulls(value)
    return result


def _merge_lists(base: list[Any], patch: list[Any], path: Path, key: str, changes: list[Change]) -> list[Any]:
    result = list(base)
    places = {entry.get(key): i for i, entry in enumerate(base) if isinstance(entry, dict)}
    for i, entry in enumerate(patch):
        name = entry.get(key) if isinstance(entry, dict) else None
        if isinstance(name, str | int) and name in places:
            position = places[name]
            result[position] = _merge_entry(result[position], entry, (*path, i), changes)
        else:
            result.append(without_nulls(entry))
    return result


def _merge_entry(old: Any, new: Any, path: Path, changes: list[Change]) -> Any:
    """Return a merged entry; one that gets its value from elsewhere is replaced, as both would be invalid."""
    if isinstance(new, dict) and ("value" in new) != ("value" in old) and {"value", "valueFrom"} & new.keys():
        changes.append(Change(path, old, new))
        return without_nulls(new)
    return _merge(old, new, path, changes)


def without_nulls(value: Any) -> Any:
    """Return a value without the fields that are null, which mean nothing where there is nothing to remove."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def origin(path: Path, merged: Any, patch: Any) -> Path | None:
    """Return where in `patch` the part of `merged` at `path` was written; None if it is ours alone.

    The nearest written part around it counts, if what is at fault lies below it.
    """
    found: list[str | int] = []
    for part in path:
        if isinstance(part, int) and isinstance(patch, list) and isinstance(merged, list):
            entry = merged[part] if part < len(merged) else None
            index = _place_in(patch, entry, MERGE_KEYS.get(str(found[-1])) if found else None)
            if index is None:
                return None
            found.append(index)
            patch, merged = patch[index], entry
        elif isinstance(patch, dict) and part in patch:
            found.append(part)
            patch = patch[part]
            merged = merged.get(part) if isinstance(merged, dict) else None
        else:
            return tuple(found) if found and not isinstance(patch, list) else None
    return tuple(found)


def _place_in(patch: list[Any], entry: Any, key: str | None) -> int | None:
    for i, candidate in enumerate(patch):
        if key is not None and isinstance(entry, dict) and isinstance(candidate, dict):
            if key in candidate and candidate[key] == entry.get(key):
                return i
        elif without_nulls(candidate) == entry:
            return i
    return None
