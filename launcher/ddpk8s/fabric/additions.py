"""What a profile adds to a job, with parameters put in; pure data for whoever writes the manifests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ddpk8s.errors import SpecErrors
from ddpk8s.fabric.checks import check_profile
from ddpk8s.fabric.lines import Lines, own_names
from ddpk8s.fabric.model import Profile
from ddpk8s.fabric.notes import notes_of, pod_security
from ddpk8s.fabric.sources import source_of
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.problems import LocatedProblem


@dataclass(frozen=True)
class Sourced:
    """A value, where it was read, and what it is for."""

    value: str
    source: str
    why: str | None = None


@dataclass(frozen=True)
class Additions:
    """What a profile adds.

    Attributes:
        profile: Name of the profile.
        env: Environment variables, without those that the job sets itself.
        resources: Resources of the pod, as request and limit.
        volumes: Volumes of the pod, all called `ddpk8s-...`.
        mounts: Mounts of our container.
        annotations: Annotations of the pod.
        labels: Labels of the pod.
        capabilities: Capabilities that our container adds.
        memlock: Whether the transport locks memory, so that the agent has to look at the limit.
        run_as_root: Whether our container must run as user 0: capabilities do nothing for others.
        privileged: Whether our container must be privileged.
        sidecars: Init containers with `restartPolicy: Always`; they end with ours.
        init_containers: Containers that run before ours.
        host_network: Whether pods use the node's network.
        dns_policy: The DNS policy that goes with it, or None.
        prologue: Lines of bash that run before the agent, which must be `exec`ed after them.
        node_selector: Labels that nodes must have.
        tolerations: Taints that pods tolerate.
        near: Node labels whose value all pods of the job must share (required pod affinity).
        claims: Resource claims of the pod; our container uses each by its name.
        objects: Further objects of the job, without namespace and labels.
        pod_security: Strictest Pod Security level that admits it: restricted, baseline or privileged.
        notes: Sentences for a person.
    """

    profile: str
    env: Mapping[str, Sourced]
    resources: Mapping[str, str]
    volumes: Sequence[dict[str, Any]]
    mounts: Sequence[dict[str, Any]]
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    capabilities: Sequence[str]
    memlock: bool
    run_as_root: bool
    privileged: bool
    sidecars: Sequence[dict[str, Any]]
    init_containers: Sequence[dict[str, Any]]
    host_network: bool
    dns_policy: str | None
    prologue: Sequence[str]
    node_selector: Mapping[str, str]
    tolerations: Sequence[dict[str, Any]]
    near: Sequence[str]
    claims: Sequence[dict[str, Any]]
    objects: Sequence[dict[str, Any]]
    pod_security: str
    notes: Sequence[str]


def additions(profile: Profile, job: TrainingJob) -> Additions:
    """Return what the profile adds to the job.

    Raises:
        SpecErrors: the job cannot use the profile, or leaves a parameter out; all at once. Who wants them
            with their places in the file calls `check_profile` first.
    """
    errors = [problem for problem in check_profile(profile, job) if not problem.warning]
    if errors:
        raise SpecErrors([LocatedProblem(job.metadata.name, problem) for problem in errors])
    lines = Lines(profile, job)
    capabilities = tuple(line.value for line in lines.texts(profile.capabilities))
    host_network, privileged = lines.holds(profile.host_network), lines.holds(profile.privileged)
    return Additions(
        profile=profile.name,
        env={
            name: Sourced(line.value, source_of(profile, line.source), line.why)
            for name, line in lines.mapping(profile.env).items()
            if name not in own_names(job.spec)
        },
        resources=lines.values_in(profile.resources),
        volumes=lines.items(profile.volumes),
        mounts=lines.items(profile.mounts),
        annotations=lines.values_in(profile.annotations),
        labels=lines.values_in(profile.labels),
        capabilities=capabilities,
        memlock="IPC_LOCK" in capabilities,
        run_as_root=lines.needs_root(),
        privileged=privileged,
        sidecars=lines.items(profile.sidecars),
        init_containers=lines.items(profile.init_containers),
        host_network=host_network,
        dns_policy="ClusterFirstWithHostNet" if host_network else None,
        prologue=lines.prologue(),
        node_selector=lines.node_selector(),
        tolerations=lines.items(profile.tolerations),
        near=tuple(line.value for line in lines.texts(profile.near)),
        claims=lines.items(profile.claims),
        objects=lines.items(profile.objects),
        pod_security=pod_security(lines)[0],
        notes=tuple(notes_of(lines)),
    )
