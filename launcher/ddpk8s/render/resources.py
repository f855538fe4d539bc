"""What a pod asks of its node: requests equal limits, but the CPU has only a request unless told."""

from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.context import Context

Json = dict[str, Any]
GPU_CLAIM = f"{c.PREFIX}gpus"


def resources(context: Context) -> Json:
    """Return the `resources` of our container."""
    given = context.spec.resources
    both: dict[str, str] = {}
    if given.gpu and given.device_class is None:
        both[given.gpu_resource] = str(given.gpu)
    if given.memory is not None:
        both["memory"] = given.memory
    both.update(context.extras.resources)
    requests, limits = dict(both), dict(both)
    if given.cpu is not None:
        requests["cpu"] = given.cpu
        if given.guaranteed:  # else none: throttling stops NCCL's threads, and with them all nodes
            limits["cpu"] = given.cpu
    result: Json = {}
    if requests:
        result["requests"] = dict(sorted(requests.items()))
    if limits:
        result["limits"] = dict(sorted(limits.items()))
    if names := [str(claim["name"]) for claim in claims(context)]:
        result["claims"] = [{"name": name} for name in names]
    return result


def claims(context: Context) -> list[Json]:
    """Return the resource claims of a pod."""
    ours: list[Json] = []
    if context.spec.resources.device_class is not None:
        ours.append({"name": GPU_CLAIM, "resourceClaimTemplateName": claim_template_name(context)})
    return [*ours, *context.extras.claims]


def claim_template_name(context: Context) -> str:
    """Return the name of the template from which each pod gets its claim to GPUs."""
    return f"{context.name}-gpus"


def claim_template(context: Context) -> Json | None:
    """Return the ResourceClaimTemplate of the pods' GPUs; None where a device plugin gives them."""
    given = context.spec.resources
    if given.device_class is None:
        return None
    request = {"deviceClassName": given.device_class, "allocationMode": "ExactCount", "count": given.gpu}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": context.metadata(claim_template_name(context)),
        "spec": {
            "metadata": {"labels": context.labels()},
            "spec": {"devices": {"requests": [{"name": "gpus", "exactly": request}]}},
        },
    }
