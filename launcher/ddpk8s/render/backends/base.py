"""What a backend is: the object that runs the pods of a job, and how they find each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ddpk8s.render.context import Context

Json = dict[str, Any]


@dataclass(frozen=True)
class Role:
    """Pods of one template.

    Attributes:
        name: What the backend calls them.
        rank: The environment variable that tells a pod its node rank, or the part from which it follows.
        replicas: How many there are.
    """

    name: str
    rank: Json
    replicas: int


class Backend(Protocol):
    """One way to run a gang of pods on a cluster; a module of this package each."""

    name: str
    """As in `spec.backend`."""
    port_name: str
    """Name of the container's port on which the agents meet."""

    def master_address(self, context: Context) -> str:
        """Return the name under which the other pods find node rank 0."""

    def derived_names(self, context: Context) -> Mapping[str, int]:
        """Return the longest of each kind of name that is made from the job's, with its limit."""

    def roles(self, context: Context) -> tuple[Role, ...]:
        """Return the kinds of pods, that of node rank 0 first."""

    def objects(self, context: Context, templates: Mapping[str, Json]) -> list[Json]:
        """Return the backend's own objects, the one that runs the pods last; templates by name of the role."""

    def notes(self, context: Context) -> tuple[str, ...]:
        """Return what a person should know of what others add to the pods."""

    def restarts(self, context: Context) -> str:
        """Return in a sentence what happens when pods end."""
