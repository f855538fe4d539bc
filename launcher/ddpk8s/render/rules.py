"""Small rules of Kubernetes' API that several parts of a pod share."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from ddpk8s.render.schema import Violation
from ddpk8s.spec.names import DnsLabel, LabelKey, LabelValue
from ddpk8s.spec.paths import Path
from ddpk8s.spec.values import BadValueError, parse_quantity, show

Json = dict[str, Any]
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "effect": ("NoExecute", "NoSchedule", "PreferNoSchedule"),
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "medium": ("", "HugePages", "HugePages-1Gi", "HugePages-2Mi", "Memory"),
    "mountPropagation": ("Bidirectional", "HostToContainer", "None"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "protocol": ("SCTP", "TCP", "UDP"),
    "terminationMessagePolicy": ("FallbackToLogsOnError", "File"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
}
"""Fields that the schema takes for any text."""
_QUALIFIED = ("cpu", "memory", "ephemeral-storage", "storage")


def check_choices(value: Any, path: Path) -> Iterator[Violation]:
    """Yield fields anywhere below that are none of the words that Kubernetes knows."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from check_choices(item, (*path, i))
    elif isinstance(value, dict):
        for key, item in value.items():
            words = _CHOICES.get(key)
            if words and isinstance(item, str) and item not in words:
                close = get_close_matches(item, words, 1)
                rule = ", ".join(word for word in words if word)
                hint = f"did you mean {close[0]}?" if close and close[0] else None
                yield Violation((*path, key), f"is {show(item)}, but must be one of {rule}", hint)
            elif isinstance(item, dict | list) and key not in ("labels", "annotations"):
                yield from check_choices(item, (*path, key))


def check_nulls(value: Any, path: Path) -> Iterator[Violation]:
    """Yield nulls in lists and in mappings: the schema allows them, but they say nothing."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if item is None:
            yield Violation((*path, key), "is null, which says nothing here", "remove it")
        elif isinstance(item, dict | list):
            yield from check_nulls(item, (*path, key))


def check_labels(labels: Mapping[str, Any], path: Path, *, values: bool) -> Iterator[Violation]:
    """Yield labels or annotations whose keys, or values, Kubernetes does not take."""
    for key, value in labels.items():
        yield from _apply(key, LabelKey, (*path, key))
        if values and value is not None:
            yield from _apply(value, LabelValue, (*path, key))


def check_name(value: Any, path: Path) -> Iterator[Violation]:
    """Yield the problem of a name that is no DNS label."""
    yield from _apply(value, DnsLabel, path)


def unique(entries: list[Json], path: Path, key: str) -> Iterator[Violation]:
    """Yield entries whose name is no DNS label, or another entry's."""
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        name = entry.get(key)
        if name in seen:
            yield Violation((*path, i, key), f"is {show(name)}, as is another's", "change one of them")
        elif isinstance(name, str):
            seen.add(name)
            yield from check_name(name, (*path, i, key))


def check_quantities(amounts: Mapping[str, Any], path: Path) -> Iterator[Violation]:
    """Yield resources whose names or amounts Kubernetes does not take."""
    for name, value in amounts.items():
        where = (*path, name)
        if name not in _QUALIFIED and not name.startswith("hugepages-") and "/" not in name:
            hint = "names of devices have a prefix, as in nvidia.com/gpu"
            yield Violation(where, "is no resource that Kubernetes knows", hint)
            continue
        try:
            number = parse_quantity(str(value))
        except BadValueError as failure:
            yield Violation(where, str(failure), failure.hint)
            continue
        if "/" in name and number != int(number):
            yield Violation(where, f"is {show(value)}, but devices come in whole numbers")


def by_rule(value: Any, kind: Any) -> str | None:
    """Return what the rule of a scalar type of the spec says against a value; None if nothing."""
    found = next(_apply(value, kind, ()), None)
    return None if found is None else found.message.partition("but ")[2] or found.message


def _apply(value: Any, kind: Any, path: Path) -> Iterator[Violation]:
    """Apply the rule of a scalar type of the spec to a value here."""
    check = next(part.func for part in kind.__metadata__ if hasattr(part, "func"))
    try:
        check(str(value))
    except BadValueError as failure:
        yield Violation(path, str(failure), failure.hint)


IDENTIFIER = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
"""Names of environment variables, as Kubernetes takes them."""
