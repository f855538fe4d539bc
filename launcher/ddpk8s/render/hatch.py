"""The escape hatch: the job's pod template goes over ours, and the whole is judged."""

from dataclasses import dataclass
from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.context import Context
from ddpk8s.render.environment import rank_environment
from ddpk8s.render.merge import Change, merge, origin
from ddpk8s.render.pod_rules import check_pod
from ddpk8s.render.schema import Violation, check_definition
from ddpk8s.spec.paths import Path, format_path
from ddpk8s.spec.problems import Problem

Json = dict[str, Any]
ROOT: Path = ("spec", "podTemplate")
_DEFINITION = "io.k8s.api.core.v1.PodTemplateSpec"


@dataclass(frozen=True)
class Hatch:
    """A pod template with the job's own merged in.

    Attributes:
        template: The result.
        changes: What of ours was replaced.
        problems: What is wrong with the job's part.
    """

    template: Json
    changes: list[Change]
    problems: list[Problem]


def open_hatch(context: Context, ours: Json, rank: Json, version: str) -> Hatch:
    """Return our template with `spec.podTemplate` merged in and judged.

    Args:
        context: The job.
        ours: Our template.
        rank: The environment variable that tells a pod its node rank.
        version: Of Kubernetes, whose schema judges.
    """
    theirs = context.spec.pod_template
    if not theirs:
        return Hatch(ours, [], [])
    merged, changes = merge(ours, theirs, ROOT)
    violations = check_definition(merged, _DEFINITION, version) or list(check_pod(merged, version))
    if not violations:
        return Hatch(_tell_rank(context, merged, rank), changes, [])
    problems = [_problem(violation, merged, theirs) for violation in violations]
    return Hatch(merged, changes, list(dict.fromkeys(problems)))


def _problem(violation: Violation, merged: Json, theirs: Json) -> Problem:
    place = origin(violation.path, merged, theirs)
    if place is not None and len(place) == len(violation.path):
        where = (*ROOT, *place)
        return Problem(where, f"{format_path(where)} {violation.message}", violation.hint)
    where = (*ROOT, *(place or ()))
    inner = format_path(violation.path)
    return Problem(where, f"{format_path(where)}: {inner} {violation.message}", violation.hint)


def _tell_rank(context: Context, template: Json, rank: Json) -> Json:
    """Return the template with the place in the gang told to init containers and sidecars of the job, too.

    Those that ask for no GPU see none either: some runtimes show all of the node's to everybody.
    """
    pod = dict(template["spec"])
    known = [rank, *rank_environment(context)]
    ours = {each["name"] for each in (*context.extras.init_containers, *context.extras.sidecars)} | {
        c.CONTAINER
    }
    for kind in ("initContainers", "containers"):
        if kind in pod:
            pod[kind] = [
                each if each["name"] in ours else _with_environment(context, each, known)
                for each in pod[kind]
            ]
    return {**template, "spec": pod}


def _with_environment(context: Context, container: Json, known: list[Json]) -> Json:
    given = container.get("env") or []
    names = {variable["name"] for variable in given}
    asks = (container.get("resources") or {}).get("limits") or {}
    extra = list(known)
    resource = context.spec.resources.gpu_resource
    if context.spec.resources.gpu and resource.startswith("nvidia.com/") and resource not in asks:
        extra.append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"})
    added = [variable for variable in extra if variable["name"] not in names]
    return {**container, "env": [*added, *given]}
