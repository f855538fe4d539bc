"""What a person wants to know of a rendering: size, endpoint, names, and what was added."""

from collections.abc import Iterator
from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.manifests import Rendering
from ddpk8s.render.plan import gang_port
from ddpk8s.spec.paths import format_path
from ddpk8s.spec.values import amount, show


def summary(rendering: Rendering) -> list[str]:
    """Return the lines that stand on stderr beside the objects."""
    return list(_lines(rendering))


def _lines(rendering: Rendering) -> Iterator[str]:
    context, backend = rendering.context, rendering.backend
    spec = context.spec
    nodes, nproc = spec.topology.nnodes, spec.nproc_per_node
    yield (
        f"{context.name}: {amount(nodes, 'nodes')} x {amount(nproc, 'processes')} = world size {spec.world_size}, "
        f"backend {backend.name}, run {context.run_id}"
    )
    if nodes > 1:
        endpoint = f"{backend.master_address(context)}:{gang_port(context)}"
        yield f"  endpoint: {endpoint}, the same for all nodes; {_ports(rendering)}"
    longest, limit = max(backend.derived_names(context).items(), key=lambda item: len(item[0]) - item[1])
    yield f"  longest name: {longest}, {len(longest)} of {limit} characters"
    yield f"  fabric {context.extras.profile}: {_added(rendering)}"
    for note in context.extras.notes:
        yield f"    {note}"
    yield f"  restarts: {backend.restarts(context)}"
    for note in backend.notes(context):
        yield f"  {note}"
    if context.host_network:
        yield "  hostNetwork: no NetworkPolicy protects the pods, whose ports are those of their nodes"
    elif not spec.network_policy:
        yield "  networkPolicy is false: whoever reaches the pods may talk to torch and NCCL, which ask nobody"
    claims = sorted(
        {volume.persistent_volume_claim for volume in spec.storage if volume.persistent_volume_claim}
    )
    if nodes > 1 and claims:
        yield (
            f"  claims {', '.join(claims)}: pods on {nodes} nodes mount them, so their access mode must be "
            "ReadWriteMany (ReadOnlyMany will do where readOnly is true)"
        )
    if nodes > 1 and spec.scheduling.queue is None:
        yield (
            "  no queue: where there is no room for all nodes, the others hold what they have until startDeadline; "
            "spec.scheduling.queue starts all or none"
        )
    for change in rendering.changes:
        new = "removed" if change.new is None else f"-> {_short(change.new)}"
        yield f"  {format_path(change.path)} replaces ours: {_short(change.old)} {new}"


def _ports(rendering: Rendering) -> str:
    port = rendering.context.spec.topology.master_port
    if port is not None:
        return f"torchrun on port {port}"
    return f"torchrun on a free port of {c.TORCHRUN_PORTS[0]} to {c.TORCHRUN_PORTS[-1]}"


def _added(rendering: Rendering) -> str:
    extras = rendering.context.extras
    parts = [f"env {', '.join(sorted(extras.env))}"] if extras.env else []
    parts += [f"{name}: {value}" for name, value in sorted(extras.resources.items())]
    for word, things in (
        ("volumes", extras.volumes),
        ("sidecars", extras.sidecars),
        ("claims", extras.claims),
    ):
        if things:
            parts.append(f"{word} {', '.join(str(thing['name']) for thing in things)}")
    if extras.capabilities:
        parts.append(f"capabilities {', '.join(extras.capabilities)}")
    parts += ["privileged"] * extras.privileged + ["hostNetwork"] * extras.host_network
    return f"adds {'; '.join(parts)}" if parts else "adds nothing"


def _short(value: Any) -> str:
    return show(value)
