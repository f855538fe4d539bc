"""Which profile a job uses."""

from collections.abc import Mapping
from pathlib import Path

from ddpk8s.errors import SpecError
from ddpk8s.fabric.load import load_profiles
from ddpk8s.fabric.model import Profile
from ddpk8s.spec.fabric import PROFILES
from ddpk8s.spec.job import JobSpec, TrainingJob
from ddpk8s.spec.suggest import suggest_word


def select(job: TrainingJob, profiles: Mapping[str, Profile] | None = None) -> Profile:
    """Return the profile of a job: that of its file, the one it names, or by rule.

    Args:
        job: The job.
        profiles: What `load_profiles` returned. Left out, `spec.fabric.profileFile` is taken from the
            current directory.

    Raises:
        SpecError: there is no profile of that name.
        SpecErrors: mistakes in the profile's file.
    """
    fabric = job.spec.fabric
    if profiles is None:
        profiles = load_profiles(None if fabric.profile_file is None else Path(fabric.profile_file))
    if fabric.profile_file is not None:
        own = [name for name in profiles if name not in PROFILES]
        if own:
            return profiles[own[0]]
    name = fabric.profile or by_rule(job.spec)
    if name not in profiles:
        hint = suggest_word(name, profiles) or f"known are {', '.join(profiles)}"
        raise SpecError(f"spec.fabric.profile is '{name}', which is no profile", hint)
    return profiles[name]


def by_rule(spec: JobSpec) -> str:
    """Return the name of the profile of a job that names none."""
    if spec.resources.gpu == 0:
        return "cpu-gloo"
    return "nvlink" if spec.topology.nnodes == 1 and spec.resources.gpu > 1 else "tcp"
