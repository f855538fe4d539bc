"""What the API server demands of a pod beyond its schema, as far as a pod template can break it."""

from collections.abc import Iterator
from typing import Any

from ddpk8s.render.container_rules import check_containers
from ddpk8s.render.field_rules import check_fields
from ddpk8s.render.rules import check_choices, check_labels, check_nulls, unique
from ddpk8s.render.schema import Violation
from ddpk8s.spec.paths import Path

Json = dict[str, Any]
_SOURCES_ASIDE = ("name",)


def check_pod(template: Json, version: str) -> Iterator[Violation]:
    """Yield what the API server, or the node, would refuse; the schema has been checked already."""
    if nulls := list(check_nulls(template, ())):
        yield from nulls
        return
    metadata, pod = template.get("metadata") or {}, template.get("spec") or {}
    yield from check_labels(metadata.get("labels") or {}, ("metadata", "labels"), values=True)
    yield from check_labels(metadata.get("annotations") or {}, ("metadata", "annotations"), values=False)
    yield from check_labels(pod.get("nodeSelector") or {}, ("spec", "nodeSelector"), values=True)
    yield from check_choices(pod, ("spec",))
    yield from check_fields(template, version)
    yield from _volumes(pod, ("spec",))
    yield from check_containers(pod, ("spec",))
    yield from _tolerations(pod, ("spec", "tolerations"))
    yield from _root(pod, ("spec", "securityContext"))
    yield from _processes(pod)
    yield from _network(pod)


def _volumes(pod: Json, path: Path) -> Iterator[Violation]:
    volumes = pod.get("volumes") or []
    yield from unique(volumes, (*path, "volumes"), "name")
    for i, volume in enumerate(volumes):
        sources = [key for key, value in volume.items() if key not in _SOURCES_ASIDE and value is not None]
        if len(sources) != 1:
            said = "no source" if not sources else f"{len(sources)} sources ({', '.join(sources)})"
            hint = "give one, as in emptyDir: {}" if not sources else "keep one; a null removes another"
            yield Violation((*path, "volumes", i), f"has {said}, but must have one", hint)


def _tolerations(pod: Json, path: Path) -> Iterator[Violation]:
    for i, entry in enumerate(pod.get("tolerations") or []):
        operator = entry.get("operator") or "Equal"
        if operator == "Exists" and entry.get("value"):
            yield Violation((*path, i, "value"), "is set, but operator Exists compares no value", "remove it")
        if not entry.get("key") and operator != "Exists":
            yield Violation((*path, i), "has no key, which only operator Exists allows", "set key")
        if entry.get("tolerationSeconds") is not None and entry.get("effect") != "NoExecute":
            hint = "set effect: NoExecute, or remove it"
            yield Violation((*path, i, "tolerationSeconds"), "is set, but the effect is not NoExecute", hint)


def _root(pod: Json, path: Path) -> Iterator[Violation]:
    """Root is refused by the node, not by the API server: the pod would never start."""
    security = pod.get("securityContext") or {}
    if security.get("runAsUser") == 0 and security.get("runAsNonRoot"):
        hint = "set runAsNonRoot: false beside it, if it must be root"
        yield Violation((*path, "runAsUser"), "is 0, which is root, but runAsNonRoot is true", hint)


def _processes(pod: Json) -> Iterator[Violation]:
    if pod.get("shareProcessNamespace") and pod.get("hostPID"):
        text = "is true, as is hostPID, which excludes it"
        yield Violation(("spec", "shareProcessNamespace"), text, "remove one of them")


def _network(pod: Json) -> Iterator[Violation]:
    nameservers = (pod.get("dnsConfig") or {}).get("nameservers")
    if pod.get("dnsPolicy") == "None" and not nameservers:
        hint = "give them, or leave dnsPolicy out: the gang finds its nodes by the cluster's DNS"
        yield Violation(("spec", "dnsPolicy"), "is None, but dnsConfig.nameservers is not set", hint)
    if pod.get("hostNetwork") and pod.get("dnsPolicy") == "ClusterFirst":
        hint = "remove it: ClusterFirstWithHostNet is what is rendered"
        yield Violation(
            ("spec", "dnsPolicy"), "is ClusterFirst, which on the host's network means Default", hint
        )
