"""Which profiles a node is made for, by its labels and what it has to give."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from ddpk8s.fabric.load import load_profiles
from ddpk8s.fabric.model import Detection, Profile


def detect(
    labels: Mapping[str, str], allocatable: Mapping[str, str], profiles: Mapping[str, Profile] | None = None
) -> list[str]:
    """Return the names of the profiles that fit a node, the best one first.

    A cloud's own label decides before the name of a resource: the same name means one card on one cloud
    and all of them on another.

    Args:
        labels: The node's labels.
        allocatable: The node's `status.allocatable`.
        profiles: What `load_profiles` returned.
    """
    found = profiles if profiles is not None else load_profiles()
    rules = [(rule, name) for name, profile in found.items() if (rule := profile.detection) is not None]
    fitting = [(rule.order, name) for rule, name in rules if _fits(rule, labels, allocatable)]
    return [name for _, name in sorted(fitting)]


def _fits(rule: Detection, labels: Mapping[str, str], allocatable: Mapping[str, str]) -> bool:
    for key, patterns in rule.labels.items():
        if key not in labels:
            return False
        if patterns and not any(fnmatchcase(labels[key], pattern) for pattern in patterns):
            return False
    there = [name for name, amount in allocatable.items() if amount not in ("", "0")]
    return not rule.resources or any(
        fnmatchcase(name, pattern) for name in there for pattern in rule.resources
    )
