"""Everything that a profile adds, line by line, with where it was read."""

import json
from collections.abc import Iterator
from typing import Any

from ddpk8s.fabric.lines import ARCHITECTURE, Lines, own_names
from ddpk8s.fabric.model import Line, Profile
from ddpk8s.fabric.sources import source_of
from ddpk8s.spec.job import TrainingJob


def explain(profile: Profile, job: TrainingJob) -> list[tuple[str, str, str]]:
    """Return each line as what it sets, the value, and its source with what it is for."""
    lines = Lines(profile, job)
    return [
        *_env(lines),
        *_texts(lines),
        *_items(lines),
        *_switches(lines),
    ]


def _row(lines: Lines, what: str, value: str, line: Line) -> tuple[str, str, str]:
    source = source_of(lines.profile, line.source)
    return what, value, f"{source}: {line.why}" if line.why else source


def _env(lines: Lines) -> Iterator[tuple[str, str, str]]:
    names = own_names(lines.job.spec)
    for name, line in lines.mapping(lines.profile.env).items():
        if name not in names:
            yield _row(lines, f"env {name}", line.value, line)
            continue
        value = lines.job.spec.env.get(name, "from a Secret")
        yield f"env {name}", value, f"{names[name]}, in place of the profile's {line.value}"


def _texts(lines: Lines) -> Iterator[tuple[str, str, str]]:
    profile = lines.profile
    for what, section in (
        ("resource", profile.resources),
        ("annotation", profile.annotations),
        ("label", profile.labels),
        ("node label", profile.node_selector),
    ):
        for key, line in lines.mapping(section).items():
            yield _row(lines, f"{what} {key}", line.value, line)
    for what, listed in (
        ("library path", profile.library_paths),
        ("prologue", profile.prologue),
        ("capability", profile.capabilities),
        ("pods near by", profile.near),
    ):
        for line in lines.texts(listed):
            yield _row(lines, what, line.value, line)


def _items(lines: Lines) -> Iterator[tuple[str, str, str]]:
    profile = lines.profile
    for what, listed in (
        ("volume", profile.volumes),
        ("mount", profile.mounts),
        ("sidecar", profile.sidecars),
        ("init container", profile.init_containers),
        ("toleration", profile.tolerations),
        ("claim", profile.claims),
        ("object", profile.objects),
    ):
        for line in lines.item_lines(listed):
            yield _row(lines, what, _json(line.item), line)


def _switches(lines: Lines) -> Iterator[tuple[str, str, str]]:
    profile = lines.profile
    for what, line in (("privileged", profile.privileged), ("hostNetwork", profile.host_network)):
        if line is not None and lines.holds(line):
            yield _row(lines, what, "true", line)
    if lines.needs_root():
        why = "capabilities do nothing for other users"
        yield "runAsUser", "0", f"{source_of(profile, 'ipc-lock-root')}: {why}"
    if profile.architecture is not None:
        yield f"node label {ARCHITECTURE}", profile.architecture, "the profile's architecture"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
