"""What must hold inside a profile: names that it may set, parameters that it refers to, a pinned transport."""

import re
from collections.abc import Iterator

from ddpk8s.fabric.judge_items import judge_items
from ddpk8s.fabric.model import Line, Profile
from ddpk8s.fabric.values import BUILT_IN, references
from ddpk8s.spec.checks.environment import check_owner
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error

PINS = ("NCCL_NET", "NCCL_MNNVL_ENABLE")
"""Either of them makes NCCL stop where its transport is missing."""

_RESOURCE = re.compile(r"(hugepages-\w+|[a-z0-9.-]+/[A-Za-z0-9._-]+|\$\{\w+\})")
_OWN = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def judge_profile(profile: Profile) -> Iterator[Problem]:
    """Yield what is wrong between the fields of a profile."""
    yield from _check_env(profile)
    yield from _check_references(profile)
    yield from judge_items(profile)
    for name in profile.resources:
        if not _RESOURCE.fullmatch(name):
            hint = "cpu, memory and GPUs come from spec.resources"
            yield error(("resources", name), "is no extended resource, as in rdma/ib, nor huge pages", hint)
    for name, parameter in profile.parameters.items():
        try:
            re.compile(parameter.pattern)
        except (re.error, OverflowError, RecursionError) as failure:
            yield error(("parameters", name, "pattern"), f"is no Python regular expression: {failure}")
    pinned = [name for name in PINS if name in profile.env]
    if profile.rdma and not pinned:
        hint = "write for example NCCL_NET: {value: IB, when: multiNode, source: nccl-env}"
        text = "is true but env sets no NCCL_NET, so jobs would crawl over sockets where RDMA is missing"
        yield error("rdma", text, hint, ["env"])


def _check_env(profile: Profile) -> Iterator[Problem]:
    for name in profile.env:
        yield from check_owner(("env", name), name)
        if name in _OWN:
            hint = "write libraryPaths" if name == "LD_LIBRARY_PATH" else "remove it"
            yield error(("env", name), "would replace what the image or Kubernetes sets", hint)


def _check_references(profile: Profile) -> Iterator[Problem]:
    known = {*BUILT_IN, *profile.parameters}
    for name in profile.parameters:
        if name in BUILT_IN:
            yield error(("parameters", name), "is a name that the launcher gives a value", "rename it")
    for path, line in lines_of(profile):
        conditions = [name for name in (line.if_set, line.unless_set) if name is not None]
        used = [*conditions, *references(list(line.model_dump().values())), *references([str(path[-1])])]
        for name in dict.fromkeys(used):
            if name not in known:
                hint = f"declare it under parameters, or write one of {', '.join(sorted(known))}"
                yield error(path, f"refers to `{name}`, which is no parameter of the profile", hint)


def lines_of(profile: Profile) -> Iterator[tuple[Path, Line]]:
    """Yield every line of a profile with its path."""
    for name, parameter in profile.parameters.items():
        for kind, line in parameter.by_instance_type.items():
            yield ("parameters", name, "byInstanceType", kind), line
    for name in type(profile).model_fields:
        held, key = getattr(profile, name), str(type(profile).model_fields[name].alias)
        if isinstance(held, Line):
            yield (key,), held
        elif isinstance(held, list):
            yield from (((key, i), line) for i, line in enumerate(held) if isinstance(line, Line))
        elif isinstance(held, dict):
            yield from (((key, name), line) for name, line in held.items() if isinstance(line, Line))
