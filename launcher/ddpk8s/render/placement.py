"""On which nodes pods run: selectors, taints, neighbors."""

from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.context import Context
from ddpk8s.spec.scheduling import Toleration

Json = dict[str, Any]
_HOST = "kubernetes.io/hostname"
_NVIDIA = "nvidia.com/"
PRODUCT_LABEL = "nvidia.com/gpu.product"


def placement(context: Context) -> Json:
    """Return the fields of a pod that say where it runs."""
    fields: Json = {}
    if selector := _selector(context):
        fields["nodeSelector"] = selector
    if affinity := _affinity(context):
        fields["affinity"] = affinity
    if context.spec.topology.nnodes > 1:
        fields["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": _HOST,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": context.identity},
            }
        ]
    fields["tolerations"] = _tolerations(context)
    if context.spec.scheduling.priority_class is not None:
        fields["priorityClassName"] = context.spec.scheduling.priority_class
    return fields


def queue_annotations(context: Context) -> dict[str, str]:
    """Return what Kueue needs to place all pods of a job near each other."""
    scheduling = context.spec.scheduling
    if scheduling.queue is None or scheduling.topology_key is None or context.spec.topology.nnodes == 1:
        return {}
    return {"kueue.x-k8s.io/podset-preferred-topology": scheduling.topology_key}


def _selector(context: Context) -> dict[str, str]:
    selector = {**context.extras.node_selector, **context.spec.scheduling.node_selector}
    if context.spec.resources.gpu_product is not None:
        selector[PRODUCT_LABEL] = context.spec.resources.gpu_product
    return dict(sorted(selector.items()))


def _affinity(context: Context) -> Json:
    """Return rules that bring pods of this run near each other, and never onto one another's ports."""
    if context.spec.topology.nnodes == 1:
        return {}
    near: Json = {}
    if context.extras.near:
        near["requiredDuringSchedulingIgnoredDuringExecution"] = [
            _term(context, key) for key in sorted(context.extras.near)
        ]
    key = context.spec.scheduling.topology_key
    if key is not None and key not in context.extras.near:
        near["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 100, "podAffinityTerm": _term(context, key)}
        ]
    affinity: Json = {"podAffinity": near} if near else {}
    if context.host_network:
        affinity["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [_term(context, _HOST)]
        }
    return affinity


def _term(context: Context, key: str) -> Json:
    return {"labelSelector": {"matchLabels": context.identity}, "topologyKey": key}


def _tolerations(context: Context) -> list[Json]:
    spec = context.spec
    ours: list[Json] = [
        {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": c.LOST_NODE_SECONDS}
        for state in ("not-ready", "unreachable")
    ]  # fmt: skip
    if spec.resources.gpu:
        resource = spec.resources.gpu_resource
        key = f"{_NVIDIA}gpu" if resource.startswith(_NVIDIA) else resource
        ours.append({"key": key, "operator": "Exists", "effect": "NoSchedule"})
    theirs = sorted((_toleration(entry) for entry in spec.scheduling.tolerations), key=_order)
    result: list[Json] = []
    for entry in (*ours, *context.extras.tolerations, *theirs):
        if entry not in result:
            result.append(entry)
    return result


def _order(toleration: Json) -> list[str]:
    return [
        str(toleration.get(key, "")) for key in ("key", "operator", "value", "effect", "tolerationSeconds")
    ]


def _toleration(entry: Toleration) -> Json:
    given = {
        "key": entry.key,
        "operator": entry.operator,
        "value": entry.value,
        "effect": entry.effect,
        "tolerationSeconds": entry.toleration_seconds,
    }
    return {key: value for key, value in given.items() if value is not None}
