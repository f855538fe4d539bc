"""Kubernetes' own Job with an index for each pod; nothing has to be installed for it."""

import math
from collections.abc import Mapping
from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.backends.base import Role
from ddpk8s.render.context import Context
from ddpk8s.render.environment import field_ref
from ddpk8s.render.plan import gang_port

Json = dict[str, Any]
_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
STOPPED = [143]
MISTAKES = [1, 2, 78, 126, 127, 128]
"""Exit codes after which no pod is made again: the agent's own verdicts, and a command that cannot start."""
SPARE_PODS = 3
"""Replacements of a pod beyond `maxRestarts` before the Job gives up: the agents' own budget ends first."""


class IndexedJob:
    """The backend `IndexedJob`."""

    name = "IndexedJob"
    port_name = "gang"

    def master_address(self, context: Context) -> str:
        """Return the name of the pod with index 0 in the headless Service."""
        return f"{context.name}-0.{self._service(context)}"

    def derived_names(self, context: Context) -> Mapping[str, int]:
        """Return the longest host name, and the Service's name."""
        last = context.spec.topology.nnodes - 1
        return {f"{context.name}-{last}": c.NAME_LIMIT, self._service(context): c.NAME_LIMIT}

    def roles(self, context: Context) -> tuple[Role, ...]:
        """Return the one kind of pods there is; its node rank is the completion index."""
        rank = {"name": "DDPK8S_NODE_RANK", "valueFrom": field_ref(_INDEX)}
        return (Role("Pod", rank, context.spec.topology.nnodes),)

    def objects(self, context: Context, templates: Mapping[str, Json]) -> list[Json]:
        """Return the headless Service and the Job."""
        return [self._make_service(context), self._make_job(context, templates["Pod"])]

    def notes(self, _context: Context) -> tuple[str, ...]:
        """Return nothing: nobody adds anything."""
        return ()

    def restarts(self, context: Context) -> str:
        """Say what the rules of the Job mean."""
        limit = context.spec.failure_policy.max_restarts + SPARE_PODS
        return (
            f"a pod that is lost or preempted, or ends with {STOPPED[0]}, is replaced; one that ends with "
            f"{', '.join(map(str, MISTAKES))} ends the Job; with any other code it is replaced up to {limit} times"
        )

    def _service(self, context: Context) -> str:
        return f"{context.name}-gang"

    def _make_service(self, context: Context) -> Json:
        port = gang_port(context)
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": context.metadata(self._service(context)),
            "spec": {
                "clusterIP": "None",
                # Agents look for each other long before anybody could call them ready.
                "publishNotReadyAddresses": True,
                "selector": context.identity,
                "ports": [{"name": self.port_name, "port": port, "protocol": "TCP", "targetPort": port}],
            },
        }

    def _make_job(self, context: Context, template: Json) -> Json:
        policy, nnodes = context.spec.failure_policy, context.spec.topology.nnodes
        template["spec"]["subdomain"] = self._service(context)
        spec: Json = {
            "completionMode": "Indexed",
            "completions": nnodes,
            "parallelism": nnodes,
            "backoffLimitPerIndex": policy.max_restarts + SPARE_PODS,
            "maxFailedIndexes": 0,  # without it the other pods of the gang would go on waiting, with their GPUs
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": _failure_rules()},
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]},  # the coordinator leaves last
        }
        if policy.active_deadline is not None:
            spec["activeDeadlineSeconds"] = math.ceil(policy.active_deadline.total_seconds())
        if policy.ttl_after_finished is not None:
            spec["ttlSecondsAfterFinished"] = math.ceil(policy.ttl_after_finished.total_seconds())
        if context.spec.scheduling.queue is not None:
            spec["suspend"] = True  # the queue resumes it; so it never passes the queue by
        spec["template"] = template
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": job_metadata(context),
            "spec": spec,
        }


def job_metadata(context: Context) -> Json:
    """Return the metadata of the object that runs the pods: with the job's annotations and its queue."""
    queue = context.spec.scheduling.queue
    metadata: Json = context.metadata(context.name, {c.QUEUE_LABEL: queue} if queue else None)
    if context.job.metadata.annotations:
        metadata["annotations"] = dict(sorted(context.job.metadata.annotations.items()))
    return metadata


def _failure_rules() -> list[Json]:
    return [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "Ignore", "onExitCodes": _codes(STOPPED)},
        {"action": "FailJob", "onExitCodes": _codes(MISTAKES)},
    ]


def _codes(values: list[int]) -> Json:
    return {"containerName": c.CONTAINER, "operator": "In", "values": values}
