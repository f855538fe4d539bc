"""The parts of manifests in a profile: what we rely on in them. Kubernetes' schema judges the rest when rendered."""

from collections.abc import Iterator, Sequence
from typing import Any

from ddpk8s.fabric.model import Item, Profile
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error
from ddpk8s.spec.values import show

PREFIX = "ddpk8s-"
"""Names of volumes and containers of a profile begin so; those of a job may not."""


def judge_items(profile: Profile) -> Iterator[Problem]:
    """Yield what is wrong with volumes, mounts, containers, claims and objects."""
    for key, lines, fields in (
        ("volumes", profile.volumes, ["name"]),
        ("mounts", profile.mounts, ["name", "mountPath"]),
        ("sidecars", profile.sidecars, ["name", "image"]),
        ("initContainers", profile.init_containers, ["name", "image"]),
        ("claims", profile.claims, ["name"]),
        ("objects", profile.objects, ["apiVersion", "kind"]),
    ):
        yield from _check_texts(key, lines, fields)
    yield from _check_volumes(profile)
    yield from _check_containers("sidecars", profile.sidecars)
    yield from _check_containers("initContainers", profile.init_containers)
    for i, line in enumerate(profile.objects):
        metadata = line.item.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            path = ("objects", i, "item", "metadata")
            yield error(path, "has no name", "write for example name: ${job}-imex")


def _check_texts(key: str, lines: Sequence[Item], fields: list[str]) -> Iterator[Problem]:
    for i, line in enumerate(lines):
        for field in fields:
            value = line.item.get(field)
            if not isinstance(value, str) or not value:
                yield error((key, i, "item", field), "is missing, but must be text")
            elif field == "name" and key != "claims" and not value.startswith(PREFIX):
                text = f"is {show(value)}, but names in a profile begin with {PREFIX}, which no job's do"
                yield error((key, i, "item", field), text, f"write {PREFIX}{value}")


def _check_volumes(profile: Profile) -> Iterator[Problem]:
    for i, line in enumerate(profile.volumes):
        host_path = line.item.get("hostPath", {"path": "/"})
        if not isinstance(host_path, dict) or not isinstance(host_path.get("path"), str):
            yield error(("volumes", i, "item", "hostPath"), "has no path", "write hostPath: {path: /...}")
    known = [line.item.get("name") for line in profile.volumes]
    for i, line in enumerate(profile.mounts):
        name = line.item.get("name")
        if isinstance(name, str) and name not in known:
            yield error(("mounts", i, "item", "name"), f"is {show(name)}, which is no volume of the profile")


def _check_containers(key: str, lines: Sequence[Item]) -> Iterator[Problem]:
    for i, line in enumerate(lines):
        path: Path = (key, i, "item")
        if key == "sidecars" and line.item.get("restartPolicy") != "Always":
            hint = "write restartPolicy: Always; a sidecar without it keeps the pod from ending"
            yield error((*path, "restartPolicy"), "must be Always", hint)
        if added_capabilities(line.item) is None:
            hint = "write securityContext: {capabilities: {add: [NAME]}}"
            yield error((*path, "securityContext"), "is not as in a pod's manifest", hint)


def added_capabilities(container: dict[str, Any]) -> list[str] | None:
    """Return the capabilities that a container adds; None if they are not where a manifest has them."""
    context = container.get("securityContext", {})
    capabilities = context.get("capabilities", {}) if isinstance(context, dict) else None
    added = capabilities.get("add", []) if isinstance(capabilities, dict) else None
    if not isinstance(added, list) or not all(isinstance(name, str) for name in added):
        return None
    return added
