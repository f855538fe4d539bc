"""The pod template: our container, what is around it, and the rules that it keeps to."""

import math
from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.context import Context
from ddpk8s.render.environment import environment
from ddpk8s.render.placement import placement, queue_annotations
from ddpk8s.render.plan import gang_port
from ddpk8s.render.resources import claims, resources
from ddpk8s.render.volumes import mounts, volumes
from ddpk8s.spec.failure import SHUTDOWN_MARGIN

Json = dict[str, Any]
_AGENT = ["python3", f"{c.AGENT_DIRECTORY}/{c.AGENT_FILE}", "--plan", c.PLAN_FILE]
_ANNOTATIONS = {
    # Autoscalers must not move one pod of a gang: all of them would start again.
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
    # A mesh's proxy outlives the training, and cuts NCCL's connections.
    "linkerd.io/inject": "disabled",
    "sidecar.istio.io/inject": "false",
}


def pod_template(context: Context, maps: tuple[str, str, str | None], rank: Json, port_name: str) -> Json:
    """Return the template of a pod.

    Args:
        context: The job.
        maps: Names of the ConfigMaps of plan, agent and code.
        rank: The environment variable that tells a pod its node rank.
        port_name: Name of the port on which the agents meet.
    """
    annotations = {**_ANNOTATIONS, **queue_annotations(context), **context.extras.annotations}
    labels = {"sidecar.istio.io/inject": "false", **context.labels(), **context.extras.labels}
    return {
        "metadata": {
            "labels": dict(sorted(labels.items())),
            "annotations": dict(sorted(annotations.items())),
        },
        "spec": _pod(context, maps, rank, port_name),
    }


def _pod(context: Context, maps: tuple[str, str, str | None], rank: Json, port_name: str) -> Json:
    spec, extras = context.spec, context.extras
    pod: Json = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": math.ceil(
            max(spec.failure_policy.grace_period, SHUTDOWN_MARGIN).total_seconds()
        ),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": _pod_security(context),
        **placement(context),
    }
    if spec.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in sorted(set(spec.image_pull_secrets))]
    if context.host_network:
        pod["hostNetwork"] = True
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"  # else names of Services are unknown there
    if found := claims(context):
        pod["resourceClaims"] = found
    before = [*extras.init_containers, *extras.sidecars]
    if before:
        pod["initContainers"] = before
    pod["containers"] = [_container(context, rank, port_name)]
    pod["volumes"] = volumes(context, *maps)
    return pod


def _container(context: Context, rank: Json, port_name: str) -> Json:
    spec = context.spec
    container: Json = {"name": c.CONTAINER, "image": spec.image}
    if spec.image_pull_policy is not None:
        container["imagePullPolicy"] = spec.image_pull_policy
    container["command"] = _command(context)
    container["ports"] = [{"name": port_name, "containerPort": gang_port(context), "protocol": "TCP"}]
    container["env"] = environment(context, rank)
    if asked := resources(context):
        container["resources"] = asked
    container["volumeMounts"] = mounts(context)
    container["securityContext"] = _container_security(context)
    container["terminationMessagePath"] = c.TERMINATION_FILE
    container["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return container


def _command(context: Context) -> list[str]:
    """Return the agent's command line; through a shell only where a profile has lines to run before."""
    if not context.extras.prologue:
        return list(_AGENT)
    return ["bash", "-c", "\n".join([*context.extras.prologue, 'exec "$@"']), "bash", *_AGENT]


def _pod_security(context: Context) -> Json:
    return {
        **({} if context.extras.run_as_root else {"runAsNonRoot": True}),
        "runAsUser": c.USER,
        "runAsGroup": c.USER,
        "fsGroup": c.USER,
        "fsGroupChangePolicy": "OnRootMismatch",  # not a walk over millions of files at each start
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _container_security(context: Context) -> Json:
    if context.extras.privileged:
        return {"privileged": True, "runAsUser": 0}
    user = {"runAsUser": 0} if context.extras.run_as_root else {}
    capabilities: Json = {"drop": ["ALL"]}
    if context.extras.capabilities:
        capabilities["add"] = sorted(context.extras.capabilities)
    return {**user, "allowPrivilegeEscalation": False, "capabilities": capabilities}
