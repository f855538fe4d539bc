"""Whether a job can use a profile: what both say together, each mistake with its field and its fix."""

import re
from collections.abc import Iterator

from ddpk8s.fabric.conflicts import check_conflicts
from ddpk8s.fabric.lines import Lines
from ddpk8s.fabric.model import Parameter, Profile
from ddpk8s.fabric.values import INSTANCE_TYPE
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error
from ddpk8s.spec.suggest import suggest_word
from ddpk8s.spec.values import show

PROFILE = "spec.fabric.profile"
_PARAMETERS: Path = ("spec", "fabric", "parameters")


def check_profile(profile: Profile, job: TrainingJob) -> Iterator[Problem]:
    """Yield what keeps a job from using a profile, and warnings about what the job overrides."""
    lines = Lines(profile, job)
    yield from _check_size(profile, job)
    yield from _check_parameters(lines)
    yield from check_conflicts(lines)


def field_of(job: TrainingJob) -> str:
    """Return the field that decides which profile a job has."""
    fabric = job.spec.fabric
    if fabric.profile is None and fabric.profile_file is not None:
        return "spec.fabric.profileFile"
    return PROFILE


def _check_size(profile: Profile, job: TrainingJob) -> Iterator[Problem]:
    gpu, nnodes, field = job.spec.resources.gpu, job.spec.topology.nnodes, field_of(job)
    names = f"is {show(profile.name)}" if field == PROFILE else f"has the profile {show(profile.name)}"
    related = ["spec.resources.gpu"]
    if profile.devices == "gpu" and gpu == 0:
        hint = "set spec.resources.gpu, or take the profile cpu-gloo, which is the default without GPUs"
        yield error(field, f"{names}, which connects GPUs, but spec.resources.gpu is 0", hint, related)
    elif profile.devices == "cpu" and gpu > 0:
        hint = "leave it out for the default, or name the profile of your network"
        yield error(
            field, f"{names}, which is for jobs without GPUs, but spec.resources.gpu is {gpu}", hint, related
        )
    elif profile.gpus_per_node is not None and gpu != profile.gpus_per_node:
        hint = f"set spec.resources.gpu: {profile.gpus_per_node}, or take the profile tcp"
        text = f"{names}, whose pods need all {profile.gpus_per_node} GPUs of a node, but spec.resources.gpu is {gpu}"
        yield error(field, text, hint, related)
    if profile.nodes == "one" and nnodes > 1:
        hint = "take the profile of the network between your nodes; tcp works everywhere"
        text = f"{names}, which works inside one node only, but spec.topology.nnodes is {nnodes}"
        yield error(field, text, hint, ["spec.topology.nnodes"])


def _check_parameters(lines: Lines) -> Iterator[Problem]:
    profile, fabric = lines.profile, lines.job.spec.fabric
    for name, value in fabric.parameters.items():
        parameter = profile.parameters.get(name)
        if parameter is None:
            known = ", ".join(profile.parameters) or "none"
            hint = suggest_word(name, profile.parameters) or f"known are {known}"
            yield error((*_PARAMETERS, name), f"is no parameter of the profile {profile.name}", hint)
        elif not value or not re.fullmatch(parameter.pattern, value):
            text = f"is {show(value)}, but must match {parameter.pattern}"
            yield error((*_PARAMETERS, name), text, parameter.description)
    for name, parameter in profile.parameters.items():
        if parameter.required and lines.values[name] is None:
            yield error(_PARAMETERS, *_missing(profile, name, parameter), ["spec.scheduling.nodeSelector"])


def _missing(profile: Profile, name: str, parameter: Parameter) -> tuple[str, str]:
    """Return text and hint about a parameter that is not given."""
    text = f"has no `{name}`, which the profile {profile.name} needs"
    hint = parameter.description
    if parameter.by_instance_type:
        known = ", ".join(f"{kind} {line.value}" for kind, line in parameter.by_instance_type.items())
        hint = f"{hint} Write it, or {INSTANCE_TYPE} in spec.scheduling.nodeSelector: {known}"
    return text, hint
