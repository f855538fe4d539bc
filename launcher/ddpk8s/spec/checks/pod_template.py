"""The escape hatch: a pod's own two sections, and no field that another field of the job file sets."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from ddpk8s.spec.checks.pod_conflicts import check_conflicts
from ddpk8s.spec.job import JobSpec
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error
from ddpk8s.spec.secrecy import is_secret_name, is_secret_value

_SECTIONS = ("metadata", "spec")
_OWNED = {
    "restartPolicy": "the backend's own business",
    "hostname": "the backend's own business",
    "subdomain": "the backend's own business",
    "terminationGracePeriodSeconds": "set by spec.failurePolicy.gracePeriod",
    "activeDeadlineSeconds": "set by spec.failurePolicy.activeDeadline",
    "priorityClassName": "set by spec.scheduling.priorityClass",
    "imagePullSecrets": "set by spec.imagePullSecrets",
}


def check_pod_template(spec: JobSpec) -> Iterator[Problem]:
    """Yield problems of `podTemplate`; Kubernetes' schema judges the rest when it is rendered."""
    root: Path = ("spec", "podTemplate")
    for key, value in spec.pod_template.items():
        path = (*root, key)
        if key not in _SECTIONS:
            close = get_close_matches(key, _SECTIONS, 1)
            hint = (
                f"did you mean `{close[0]}`?"
                if close
                else f"fields of a pod go below it: podTemplate: {{spec: {{{key}: ...}}}}"
            )
            yield error(path, "is not a known field: a pod has `metadata` and `spec`", hint)
        elif not isinstance(value, dict):
            yield error(path, "must be a mapping")
    yield from check_conflicts(spec)
    pod = spec.pod_template.get("spec")
    if not isinstance(pod, dict):
        return
    for key in _OWNED.keys() & pod.keys():
        yield error((*root, "spec", key), f"is {_OWNED[key]}", "remove it here")
    for kind in ("containers", "initContainers"):
        yield from _check_containers((*root, "spec", kind), [] if pod.get(kind) is None else pod[kind])


def _check_containers(path: Path, containers: Any) -> Iterator[Problem]:
    if not isinstance(containers, list):
        yield error(path, "must be a list", "begin each container with `- name: ...`")
        return
    for i, container in enumerate(containers):
        if not isinstance(container, dict) or not isinstance(container.get("name"), str):
            yield error(
                (*path, i), "has no name, by which it is merged", "our own container is called `pytorch`"
            )
            continue
        env = container.get("env")
        for j, variable in enumerate(env if isinstance(env, list) else []):
            if not isinstance(variable, dict) or not isinstance(variable.get("value"), str):
                continue
            name, value = str(variable.get("name", "")), variable["value"]
            if is_secret_value(value) or (
                is_secret_name(name) and value and not value.startswith(("/", "$("))
            ):
                hint = "name a Secret by spec.secrets, or by valueFrom.secretKeyRef"
                text = "looks like a secret, and secrets must not stand in the job file"
                yield error((*path, i, "env", j), text, hint)
