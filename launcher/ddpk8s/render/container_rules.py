"""What the API server demands of containers beyond their schema."""

import re
from collections.abc import Iterator
from typing import Any

from ddpk8s.render.rules import IDENTIFIER, check_quantities, unique
from ddpk8s.render.schema import Violation
from ddpk8s.spec.paths import Path
from ddpk8s.spec.values import BadValueError, parse_quantity, show

Json = dict[str, Any]
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def check_containers(pod: Json, path: Path) -> Iterator[Violation]:
    """Yield what is wrong with the containers of a pod."""
    volumes = {volume.get("name") for volume in pod.get("volumes") or []}
    claims = {claim.get("name") for claim in pod.get("resourceClaims") or []}
    both = {
        kind: [each for each in pod.get(kind) or [] if isinstance(each, dict)]
        for kind in ("initContainers", "containers")
    }
    names = {each.get("name") for each in both["initContainers"]}
    for kind, containers in both.items():
        yield from unique(containers, (*path, kind), "name")
        for i, container in enumerate(containers):
            here = (*path, kind, i)
            if kind == "containers" and container.get("name") in names:
                yield Violation((*here, "name"), f"is {show(container['name'])}, as is an init container's")
            yield from _container(container, here)
            yield from _environment(container.get("env") or [], (*here, "env"))
            yield from _mounts(container.get("volumeMounts") or [], (*here, "volumeMounts"), volumes)
            yield from _ports(container.get("ports") or [], (*here, "ports"), pod)
            yield from _resources(container.get("resources") or {}, (*here, "resources"), claims)
            yield from _security(container.get("securityContext") or {}, (*here, "securityContext"), pod)
            yield from _lifetime(container, here, is_init=kind == "initContainers")


def _container(container: Json, path: Path) -> Iterator[Violation]:
    if not container.get("image"):
        yield Violation(path, f"is container {show(container.get('name'))}, which has no image", "set image")
    for probe in _PROBES:
        given = container.get(probe)
        if given is not None and sum(given.get(handler) is not None for handler in _HANDLERS) != 1:
            yield Violation((*path, probe), f"must have one of {', '.join(_HANDLERS)}")


def _lifetime(container: Json, path: Path, *, is_init: bool) -> Iterator[Violation]:
    restart = container.get("restartPolicy")
    if not is_init:
        return
    if restart not in (None, "Always", "Never", "OnFailure"):
        yield Violation((*path, "restartPolicy"), f"is {show(restart)}, but must be Always, for a sidecar")
    elif restart != "Always":
        for field in (*_PROBES, "lifecycle"):
            if container.get(field) is not None:
                hint = "a container with restartPolicy: Always is a sidecar, and may have it"
                yield Violation((*path, field), "is not for containers that run before the others", hint)


def _environment(env: list[Json], path: Path) -> Iterator[Violation]:
    for i, variable in enumerate(env):
        name = variable.get("name")
        if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
            yield Violation((*path, i, "name"), f"is {show(name)}, which is no name of a variable")
        source = variable.get("valueFrom")
        if source is not None and variable.get("value"):
            yield Violation((*path, i), "has `value` and `valueFrom`", "keep one of them")
        elif source is not None and sum(item is not None for item in source.values()) != 1:
            yield Violation((*path, i, "valueFrom"), "must name one source")


def _mounts(mounts: list[Json], path: Path, volumes: set[Any]) -> Iterator[Violation]:
    seen: set[Any] = set()
    for i, mount in enumerate(mounts):
        name, place = mount.get("name"), mount.get("mountPath")
        if name not in volumes:
            hint = "spec.storage makes a volume and mounts it; or add it to podTemplate.spec.volumes"
            yield Violation((*path, i, "name"), f"is {show(name)}, but there is no such volume", hint)
        if not place or ":" in place:
            yield Violation((*path, i, "mountPath"), f"is {show(place)}, but must be a path without a colon")
        elif place in seen:
            yield Violation((*path, i, "mountPath"), f"is {show(place)}, where something is mounted already")
        seen.add(place)
        for key in ("subPath", "subPathExpr"):
            inner = mount.get(key)
            if inner and (inner.startswith("/") or ".." in inner.split("/")):
                yield Violation((*path, i, key), f"is {show(inner)}, but must be a path inside the volume")


def _ports(ports: list[Json], path: Path, pod: Json) -> Iterator[Violation]:
    names: set[Any] = set()
    for i, port in enumerate(ports):
        number, name, on_host = port.get("containerPort"), port.get("name"), port.get("hostPort")
        if not isinstance(number, int) or not 0 < number < 65536:
            yield Violation((*path, i, "containerPort"), f"is {show(number)}, but must be 1 to 65535")
        if name is not None and (len(name) > 15 or not _PORT_NAME.fullmatch(name) or "--" in name):
            rule = "lower-case letters, digits and `-`, with a letter in it, 15 characters at most"
            yield Violation((*path, i, "name"), f"is {show(name)}, but must be {rule}")
        elif name is not None and name in names:
            yield Violation((*path, i, "name"), f"is {show(name)}, as is another's")
        names.add(name)
        if pod.get("hostNetwork") and on_host not in (None, number):
            yield Violation((*path, i, "hostPort"), "must equal containerPort on the host's network")


def _resources(resources: Json, path: Path, claims: set[Any]) -> Iterator[Violation]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    found = [
        *check_quantities(limits, (*path, "limits")),
        *check_quantities(requests, (*path, "requests")),
    ]
    yield from found
    for i, claim in enumerate(resources.get("claims") or []):
        if claim.get("name") not in claims:
            yield Violation((*path, "claims", i), f"names {show(claim.get('name'))}, no claim of the pod")
    if not found:
        yield from _overcommit(requests, limits, path)


def _overcommit(requests: Json, limits: Json, path: Path) -> Iterator[Violation]:
    """Yield requests above their limits; devices must have both alike."""
    for name, value in requests.items():
        limit, where = limits.get(name), (*path, "requests", name)
        try:
            asked = parse_quantity(str(value))
            most = None if limit is None else parse_quantity(str(limit))
        except BadValueError:
            continue
        if "/" in name and asked != most:
            said = "is not set" if limit is None else f"is {limit}"
            yield Violation(where, f"is {value}, but its limit {said}: devices need both alike")
        elif most is not None and asked > most:
            yield Violation(where, f"is {value}, more than its limit, which is {limit}")


def _security(security: Json, path: Path, pod: Json) -> Iterator[Violation]:
    if security.get("allowPrivilegeEscalation") is False:
        added = (security.get("capabilities") or {}).get("add") or []
        reason = "privileged is true" if security.get("privileged") else None
        if {"CAP_SYS_ADMIN", "SYS_ADMIN"} & set(added):
            reason = "capability SYS_ADMIN is added"
        if reason:
            hint = "set allowPrivilegeEscalation: true beside it"
            yield Violation(path, f"cannot be: allowPrivilegeEscalation is false, but {reason}", hint)
    around = pod.get("securityContext") or {}
    non_root = security.get("runAsNonRoot", around.get("runAsNonRoot"))
    if security.get("runAsUser") == 0 and non_root:
        hint = "set runAsNonRoot: false beside it, if it must be root"
        yield Violation((*path, "runAsUser"), "is 0, which is root, but runAsNonRoot is true", hint)
