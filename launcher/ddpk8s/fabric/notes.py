"""What a person should know about a profile in a job, besides its lines."""

from collections.abc import Iterator

from ddpk8s.fabric.judge import PINS
from ddpk8s.fabric.judge_items import added_capabilities
from ddpk8s.fabric.lines import Lines, own_names
from ddpk8s.spec.values import show

_BASELINE_CAPABILITIES = ("NET_BIND_SERVICE",)


def notes_of(lines: Lines) -> Iterator[str]:
    """Yield the notes, each a sentence without a period."""
    profile, spec = lines.profile, lines.job.spec
    if not profile.reviewed and not profile.own:
        yield f"the profile {profile.name} is untested on hardware: compare its lines with your cluster"
    names = own_names(spec)
    for name, line in lines.mapping(profile.env).items():
        if name in names and spec.env.get(name) != line.value:
            yield f"{names[name]} counts in place of the profile's {name}={line.value}"
        elif name in PINS:
            yield f"{name}={line.value} is set: a job without that transport stops, where NCCL would use sockets"
    if profile.minimum_nccl is not None:
        yield f"the image needs NCCL {profile.minimum_nccl.value} or newer"
    level, reasons = pod_security(lines)
    if reasons:
        yield f"the namespace must admit Pod Security level {level}: {', '.join(reasons)}"
    if lines.holds(profile.host_network):
        yield "pods use the node's network: a NetworkPolicy does not protect them, and ports are the node's"
    yield from (line.value for line in lines.texts(profile.notes))


def pod_security(lines: Lines) -> tuple[str, list[str]]:
    """Return the strictest Pod Security level that admits the pods, and what needs a laxer one."""
    profile = lines.profile
    reasons = []
    if lines.holds(profile.privileged):
        reasons.append("a privileged container")
    if lines.holds(profile.host_network):
        reasons.append("hostNetwork")
    reasons += [f"hostPath {volume['hostPath']['path']}" for volume in lines.items(profile.volumes)
        if "hostPath" in volume
    ]  # fmt: skip
    own = [line.value for line in lines.texts(profile.capabilities)]
    containers = [*lines.items(profile.sidecars), *lines.items(profile.init_containers)]
    for container in containers:
        own += added_capabilities(container) or []
    reasons += [f"capability {name}" for name in dict.fromkeys(own) if name not in _BASELINE_CAPABILITIES]
    if reasons:
        return "privileged", reasons
    # The level restricted forbids root, which capabilities and daemons need.
    return ("baseline", [f"capability {show(name)}" for name in own]) if own else ("restricted", [])
