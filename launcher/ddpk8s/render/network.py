"""What the job's fabric profile adds to its pods."""

from pathlib import Path

from ddpk8s.fabric import Additions, Profile, additions, check_profile, load_profiles, select
from ddpk8s.render.errors import RenderProblems
from ddpk8s.spec.job import TrainingJob


def read_network(job: TrainingJob, directory: Path | None = None) -> Additions:
    """Return what the network between the job's nodes needs.

    Args:
        job: The job.
        directory: Where the job file lies, from where `spec.fabric.profileFile` is looked for.

    Raises:
        RenderProblems: the job cannot use the profile, or leaves a parameter out.
        SpecError: there is no such profile, or the user's own has mistakes.
    """
    profile = profile_of(job, directory)
    problems = [problem for problem in check_profile(profile, job) if not problem.warning]
    if problems:
        raise RenderProblems(problems)
    return additions(profile, job)


def profile_of(job: TrainingJob, directory: Path | None = None) -> Profile:
    """Return the job's profile.

    Raises:
        SpecError: there is no such profile, or the user's own has mistakes.
    """
    own = job.spec.fabric.profile_file
    return select(job, load_profiles(None if own is None else (directory or Path()) / own))
