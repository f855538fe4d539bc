"""Rules of single fields of a pod that the schema leaves open, by the type of object that they stand in.

Each is what Kubernetes' API server checks; random pod templates were compared with a real one.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from ddpk8s.render.rules import by_rule, check_labels
from ddpk8s.render.schema import Violation, parts
from ddpk8s.spec.names import LabelKey, LabelValue, ObjectName
from ddpk8s.spec.paths import Path
from ddpk8s.spec.values import BadValueError, parse_quantity, show

Json = dict[str, Any]
Rule = Callable[[Any], str | None]
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_SEARCH = re.compile(r"\.|[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*\.?")
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PREFIX = re.compile(r"[\x20-\x3c\x3e-\x7e]*")
_FIELDS = re.compile(
    r"metadata\.(name|namespace|uid)|metadata\.(labels|annotations)\['[^']+'\]|spec\.(nodeName|serviceAccountName)"
    r"|status\.(hostIPs?|podIPs?)"
)
_RESOURCES = re.compile(r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-\w+)")


def one_of(*words: str) -> Rule:
    """Return the rule of a field that takes these words only."""
    return lambda value: None if value in words else f"must be one of {', '.join(words)}"


def between(low: int, high: int) -> Rule:
    """Return the rule of a number with bounds."""
    return lambda value: None if low <= value <= high else f"must be {low} to {high}"


def matching(pattern: re.Pattern[str], rule: str) -> Rule:
    """Return the rule of a text that matches a pattern as a whole."""
    return lambda value: None if isinstance(value, str) and pattern.fullmatch(value) else f"must be {rule}"


def named(kind: Any) -> Rule:
    """Return the rule of a scalar type of the spec."""
    return lambda value: by_rule(value, kind)


def each(rule: Rule) -> Rule:
    """Return the rule of a list whose entries all keep to `rule`."""
    return lambda values: next(
        (f"holds {show(value)}: {said}" for value in values if (said := rule(value))), None
    )


def _is_address(value: Any) -> str | None:
    try:
        ip_address(value)
    except ValueError:
        return "must be an IP address"
    return None


def _is_port(value: Any) -> str | None:
    if isinstance(value, int):
        return between(1, 65535)(value)
    is_name = (
        isinstance(value, str) and len(value) <= 15 and _PORT_NAME.fullmatch(value) and "--" not in value
    )
    return None if is_name else "must be 1 to 65535, or the name of a port"


def _is_inside(value: Any) -> str | None:
    is_good = isinstance(value, str) and value and not value.startswith("/") and ".." not in value.split("/")
    return None if is_good else "must be a path inside the volume"


def _is_quantity(value: Any) -> str | None:
    try:
        parse_quantity(str(value))
    except BadValueError as failure:
        return str(failure)
    return None


def _is_given(value: Any) -> str | None:
    return None if value else "must not be empty"


_OBJECT, _KEY = named(ObjectName), named(LabelKey)
_VALUES = each(named(LabelValue))
_COUNT, _MODE = between(0, 2**31 - 1), between(0, 0o777)
_SELECTOR = one_of("In", "NotIn", "Exists", "DoesNotExist")
_USERS = {"runAsUser": _COUNT, "runAsGroup": _COUNT}
_PROBE = dict.fromkeys(("failureThreshold", "initialDelaySeconds", "periodSeconds", "timeoutSeconds"), _COUNT)

FIELD_RULES: Mapping[str, Mapping[str, Rule]] = {
    "ConfigMapEnvSource": {"name": _OBJECT},
    "ConfigMapKeySelector": {"name": _OBJECT, "key": _is_given},
    "ConfigMapProjection": {"name": _OBJECT},
    "ConfigMapVolumeSource": {"name": _OBJECT, "defaultMode": _MODE},
    "EmptyDirVolumeSource": {"sizeLimit": _is_quantity},
    "EnvFromSource": {"prefix": matching(_PREFIX, "printable, without `=`")},
    "ExecAction": {"command": _is_given},
    "HTTPGetAction": {"port": _is_port, "scheme": one_of("HTTP", "HTTPS"), "path": _is_given},
    "HostAlias": {"ip": _is_address, "hostnames": each(_OBJECT)},
    "KeyToPath": {"key": _is_given, "path": _is_inside, "mode": _MODE},
    "LabelSelectorRequirement": {"key": _KEY, "operator": _SELECTOR, "values": _VALUES},
    "NodeSelectorRequirement": {
        "key": _KEY,
        "operator": one_of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
        "values": _VALUES,
    },
    "ObjectFieldSelector": {"fieldPath": matching(_FIELDS, "a field of a pod, as in metadata.name")},
    "PersistentVolumeClaimVolumeSource": {"claimName": _OBJECT},
    "PodAffinityTerm": {"topologyKey": _KEY},
    "PodDNSConfig": {"nameservers": each(_is_address), "searches": each(matching(_SEARCH, "a domain"))},
    "PodDNSConfigOption": {"name": _is_given},
    "PodSecurityContext": {**_USERS, "fsGroup": _COUNT, "supplementalGroups": each(_COUNT)},
    "PodSpec": {
        "activeDeadlineSeconds": between(1, 2**31 - 1),
        "nodeName": _OBJECT,
        "runtimeClassName": _OBJECT,
        "schedulerName": _OBJECT,
        "serviceAccountName": _OBJECT,
    },
    "PreferredSchedulingTerm": {"weight": between(1, 100)},
    "Probe": {**_PROBE, "successThreshold": _COUNT},
    "ProjectedVolumeSource": {"defaultMode": _MODE},
    "ResourceFieldSelector": {"resource": matching(_RESOURCES, "a resource, as in limits.cpu")},
    "SeccompProfile": {"type": one_of("Localhost", "RuntimeDefault", "Unconfined")},
    "SecretEnvSource": {"name": _OBJECT},
    "SecretKeySelector": {"name": _OBJECT, "key": _is_given},
    "SecretProjection": {"name": _OBJECT},
    "SecretVolumeSource": {"secretName": _OBJECT, "defaultMode": _MODE},
    "SecurityContext": _USERS,
    "Sysctl": {"name": matching(_SYSCTL, "the name of a sysctl")},
    "TCPSocketAction": {"port": _is_port},
    "Toleration": {"key": _KEY, "operator": one_of("Equal", "Exists"), "value": named(LabelValue)},
    "TopologySpreadConstraint": {"topologyKey": _KEY, "maxSkew": between(1, 2**31 - 1)},
    "WeightedPodAffinityTerm": {"weight": between(1, 100)},
}
"""What a field takes, if it is there, by type (of core/v1 or meta/v1) and name."""
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "ConfigMapEnvSource": ("name",),
    "ConfigMapKeySelector": ("name",),
    "ConfigMapProjection": ("name",),
    "ConfigMapVolumeSource": ("name",),
    "ExecAction": ("command",),
    "HTTPGetAction": ("port",),
    "KeyToPath": ("key", "path"),
    "LabelSelectorRequirement": ("key", "operator"),
    "NodeSelector": ("nodeSelectorTerms",),
    "NodeSelectorRequirement": ("key", "operator"),
    "ObjectFieldSelector": ("fieldPath",),
    "PodAffinityTerm": ("topologyKey",),
    "PodDNSConfigOption": ("name",),
    "ResourceFieldSelector": ("resource",),
    "SeccompProfile": ("type",),
    "SecretEnvSource": ("name",),
    "SecretKeySelector": ("name",),
    "SecretProjection": ("name",),
    "SecretVolumeSource": ("secretName",),
    "Sysctl": ("name",),
    "TCPSocketAction": ("port",),
    "TopologySpreadConstraint": ("topologyKey",),
}
"""Fields that the schema does not require, but the API server does."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "EnvFromSource": ("configMapRef", "secretRef"),
    "LifecycleHandler": ("exec", "httpGet", "sleep", "tcpSocket"),
    "VolumeProjection": (
        "clusterTrustBundle", "configMap", "downwardAPI", "podCertificate", "secret", "serviceAccountToken",
    ),
}  # fmt: skip
"""Types of which exactly one of these fields is set."""


def check_fields(template: Json, version: str) -> Iterator[Violation]:
    """Yield fields of a pod template that the API server would refuse by themselves."""
    for path, kind, value in parts(template, "io.k8s.api.core.v1.PodTemplateSpec", version):
        name = kind.rpartition(".")[2]
        for field in REQUIRED.get(name, ()):
            if not value.get(field):
                yield Violation(path, f"has no `{field}`, which is required")
        choices = CHOICES.get(name)
        if choices and sum(value.get(choice) is not None for choice in choices) != 1:
            yield Violation(path, f"must have one of {', '.join(choices)}")
        for field, rule in FIELD_RULES.get(name, {}).items():
            given = value.get(field)
            is_absent = given is None or (given == "" and rule is not _is_quantity)
            if not is_absent and (said := rule(given)):
                yield Violation((*path, field), f"is {show(given)}, but {said}")
        yield from _check_selector(name, value, path)


def _check_selector(name: str, value: Json, path: Path) -> Iterator[Violation]:
    if name == "LabelSelector":
        yield from check_labels(value.get("matchLabels") or {}, (*path, "matchLabels"), values=True)
    if name not in ("LabelSelectorRequirement", "NodeSelectorRequirement"):
        return
    operator, values = value.get("operator"), value.get("values")
    if operator in ("In", "NotIn") and not values:
        yield Violation(path, f"has no values, which operator {operator} needs", "add values: [...]")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield Violation((*path, "values"), f"is set, but operator {operator} compares no values", "remove it")
    elif operator in ("Gt", "Lt") and len(values or ()) != 1:
        yield Violation(path, f"must have one value for operator {operator}")
