"""Fabric profiles: what NCCL or gloo needs on each kind of network, as data with a source for every line."""

from ddpk8s.fabric.additions import Additions, Sourced, additions
from ddpk8s.fabric.checks import check_profile
from ddpk8s.fabric.explain import explain
from ddpk8s.fabric.load import load_profiles
from ddpk8s.fabric.model import Profile
from ddpk8s.fabric.select import select

__all__ = [
    "Additions",
    "Profile",
    "Sourced",
    "additions",
    "check_profile",
    "explain",
    "load_profiles",
    "select",
]
