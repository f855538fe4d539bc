"""The schema of Kubeflow's PyTorchJob, narrower than its own definition in a cluster.

That one takes any text for policies and any number of replicas; here stands what the operator and its webhook
really accept, and what of it we use. The pod template is Kubernetes' own.
"""

from typing import Any

_COUNT = {"type": "integer"}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _choice(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


_REPLICAS = _object(
    {
        "replicas": _COUNT,
        "restartPolicy": _choice("ExitCode", "Never", "OnFailure"),
        "template": {"$ref": "#/$defs/io.k8s.api.core.v1.PodTemplateSpec"},
    },
    "replicas",
    "restartPolicy",
    "template",
)

_RUN_POLICY = _object(
    {
        "activeDeadlineSeconds": _COUNT,
        "backoffLimit": _COUNT,
        "cleanPodPolicy": _choice("All", "None", "Running"),
        "managedBy": _choice("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"),
        "suspend": {"type": "boolean"},
        "ttlSecondsAfterFinished": _COUNT,
    },
    "cleanPodPolicy",
)

PYTORCH_JOB: dict[str, Any] = _object(
    {
        "apiVersion": _choice("kubeflow.org/v1"),
        "kind": _choice("PyTorchJob"),
        "metadata": {"$ref": "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
        "spec": _object(
            {
                "nprocPerNode": {"type": "string"},
                "pytorchReplicaSpecs": _object({"Master": _REPLICAS, "Worker": _REPLICAS}, "Master"),
                "runPolicy": _RUN_POLICY,
            },
            "nprocPerNode",
            "pytorchReplicaSpecs",
            "runPolicy",
        ),
    },
    "apiVersion",
    "kind",
    "metadata",
    "spec",
)
