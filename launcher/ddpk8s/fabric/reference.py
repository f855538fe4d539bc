"""Writes `docs/reference/fabric.md`: the profiles, their parameters, and how to write one.

`python -m ddpk8s.fabric.reference docs/reference` writes it anew; a test compares it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from ddpk8s.fabric.load import load_profiles
from ddpk8s.fabric.model import Detection, Expected, Item, Parameter, Profile, Value
from ddpk8s.spec.base import Section
from ddpk8s.spec.describe import default_of, type_of
from ddpk8s.spec.shape import fields_of

PAGE = "fabric.md"
_HEAD = """\
# Fabric profiles

Generated from the profiles by `python -m ddpk8s.fabric.reference docs/reference`.

A profile is all that a network between GPUs needs, as data: NCCL's variables, devices, mounts, capabilities, shell
lines. `spec.fabric.profile` names one; without it a job gets `cpu-gloo` (no GPUs), `nvlink` (one node, several
GPUs) or `tcp`. `ddpk8s render --explain job.yaml` lists what it adds, line by line, with where each line was read.
Variables in `spec.env` win over those of the profile. A profile that promises RDMA makes jobs of several nodes stop
where RDMA is missing, instead of crawling over sockets. Profiles that are not reviewed were written from
documentation and are untested on hardware.
"""
_OWN = """\
## A profile of your own

`spec.fabric.profileFile` names a YAML file with the fields below. Copy one of `launcher/ddpk8s/fabric/profiles` to
begin with, and give it another name. `${parameter}` stands for the parameter's value, `${gpus}`, `${nnodes}` and
`${job}` for the job's own. A line that refers to a parameter without a value is left out.
"""


def page() -> str:
    """Return the text of the page."""
    profiles = load_profiles().values()
    parts = [_HEAD, "| Profile | | Reviewed |", "|---|---|---|"]
    parts += [f"| `{p.name}` | {p.description} | {'yes' if p.reviewed else 'no'} |" for p in profiles]
    parts += ["", "## Parameters", "", "| Profile | Parameter | Default | |", "|---|---|---|---|"]
    parts += [row for profile in profiles for row in _parameters(profile)]
    parts += ["", _OWN]
    for section in (Profile, Parameter, Value, Item, Detection, Expected):
        parts += [f"### {section.__name__}", "", *_fields(section), ""]
    return "\n".join(parts)


def _parameters(profile: Profile) -> Iterator[str]:
    for name, parameter in profile.parameters.items():
        default = "required" if parameter.required else ""
        if parameter.default is not None:
            default = f"`{parameter.default}`"
        yield f"| `{profile.name}` | `{name}` | {default} | {parameter.description} |"


def _fields(section: type[Section]) -> Iterator[str]:
    yield "| Field | Type | Default | |"
    yield "|---|---|---|---|"
    for key, field in fields_of(section).items():
        default = default_of(field)
        shown = "required" if field.info.is_required() else f"`{default}`" if default is not None else ""
        cells = [f"`{key}`", type_of(field), shown, field.info.description or ""]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    (Path(sys.argv[1]) / PAGE).write_text(page(), encoding="utf-8")
