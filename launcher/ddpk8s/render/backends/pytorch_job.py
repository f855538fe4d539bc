"""Kubeflow's PyTorchJob (v1): one Master, the other nodes are Workers."""

import copy
import math
from collections.abc import Mapping
from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.backends.base import Role
from ddpk8s.render.backends.indexed_job import SPARE_PODS, job_metadata
from ddpk8s.render.context import Context
from ddpk8s.render.environment import field_ref

Json = dict[str, Any]
_INDEX = "metadata.labels['training.kubeflow.org/replica-index']"
_PODSET_GROUP = "kueue.x-k8s.io/podset-group-name"


class PyTorchJob:
    """The backend `PyTorchJob`."""

    name = "PyTorchJob"
    port_name = "pytorchjob-port"

    def master_address(self, context: Context) -> str:
        """Return the name of the Service that the operator makes for the Master."""
        return f"{context.name}-master-0"

    def derived_names(self, context: Context) -> Mapping[str, int]:
        """Return the longest name of a pod and its Service."""
        workers = context.spec.topology.nnodes - 1
        longest = f"worker-{workers - 1}" if workers else "master-0"
        return {f"{context.name}-{longest}": c.NAME_LIMIT, self.master_address(context): c.NAME_LIMIT}

    def roles(self, context: Context) -> tuple[Role, ...]:
        """Return Master and Workers; Worker i is node rank i + 1, which the agent's start adds up."""
        master = Role("Master", {"name": "DDPK8S_NODE_RANK", "value": "0"}, 1)
        workers = context.spec.topology.nnodes - 1
        if not workers:
            return (master,)
        index = {"name": "DDPK8S_WORKER_INDEX", "valueFrom": field_ref(_INDEX)}
        return (master, Role("Worker", index, workers))

    def objects(self, context: Context, templates: Mapping[str, Json]) -> list[Json]:
        """Return the PyTorchJob; the operator makes the Services."""
        spec: Json = {
            "nprocPerNode": str(context.spec.nproc_per_node),
            "runPolicy": self._run_policy(context),
            "pytorchReplicaSpecs": {
                role.name: {
                    "replicas": role.replicas,
                    "restartPolicy": "ExitCode",
                    "template": self._template(context, templates[role.name]),
                }
                for role in self.roles(context)
            },
        }
        return [
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "metadata": job_metadata(context),
                "spec": spec,
            }
        ]

    def notes(self, context: Context) -> tuple[str, ...]:
        """Return what the operator adds."""
        if context.spec.topology.nnodes == 1:
            return ()
        return (
            "the operator puts an init container before ours in each Worker, with the image of its own settings; "
            "a namespace of Pod Security level restricted admits it only if those settings say so",
        )

    def restarts(self, _context: Context) -> str:
        """Say what the policy ExitCode means."""
        return (
            "a pod that ends with 1 to 127 ends the PyTorchJob; with 128 or more it is replaced, without limit: "
            "the agents' ledger or activeDeadline ends a job that cannot go on"
        )

    def _run_policy(self, context: Context) -> Json:
        policy = context.spec.failure_policy
        run_policy: Json = {
            "cleanPodPolicy": "Running",  # else Workers keep their GPUs when the Master is done
            "backoffLimit": policy.max_restarts + SPARE_PODS,
        }
        if policy.active_deadline is not None:
            run_policy["activeDeadlineSeconds"] = math.ceil(policy.active_deadline.total_seconds())
        if policy.ttl_after_finished is not None:
            run_policy["ttlSecondsAfterFinished"] = math.ceil(policy.ttl_after_finished.total_seconds())
        if context.spec.scheduling.queue is not None:
            run_policy["suspend"] = True
        return run_policy

    def _template(self, context: Context, template: Json) -> Json:
        """Return a template of one role: the operator owns the restart policy, Kueue joins the roles."""
        template = copy.deepcopy(template)
        del template["spec"]["restartPolicy"]
        annotations = template["metadata"]["annotations"]
        if "kueue.x-k8s.io/podset-preferred-topology" in annotations:
            annotations[_PODSET_GROUP] = context.name
        return template
