"""The NetworkPolicy: torch's and NCCL's ports ask nobody who they are, so only pods of the run may connect."""

from typing import Any

from ddpk8s.render.context import Context

Json = dict[str, Any]


def network_policy(context: Context) -> Json | None:
    """Return the policy; None where the job does without, or where its pods share the node's network.

    All ports, since gloo and NCCL take any.
    """
    if not context.spec.network_policy or context.host_network:
        return None
    same_run = {"matchLabels": context.identity}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": context.metadata(f"{context.name}-gang"),
        "spec": {
            "podSelector": same_run,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": same_run}]}],
        },
    }
