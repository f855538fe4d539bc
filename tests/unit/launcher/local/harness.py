"""Jobs, and what this machine makes of them."""

from pathlib import Path
from typing import Any

from ddpk8s.local.machine import Machine
from ddpk8s.local.substitute import Substitution, Wish, substitute
from ddpk8s.local.volumes import Volumes
from ddpk8s.spec.job import TrainingJob

HERE = Path("/home/me")
BELOW = Path(".ddpk8s/volumes")
STORAGE = [
    {"name": "data", "mountPath": "/data", "persistentVolumeClaim": "d"},
    {"name": "inner", "mountPath": "/data/inner", "persistentVolumeClaim": "i"},
    {"name": "checkpoints", "mountPath": "/checkpoints", "persistentVolumeClaim": "c"},
]
TRAINING = {
    "model": {"path": "/data/inner/bert", "tokenizer": "bert-base-chinese"},
    "data": {
        "train": "/data/train.jsonl",
        "validation": "/elsewhere/v.jsonl",
        "cacheDirectory": "/checkpoints/x/../cache",
    },
}


def job(**spec: Any) -> TrainingJob:
    document = {"image": "registry.example/x:1", "storage": STORAGE} | spec
    if "entrypoint" not in document:
        document.setdefault("training", TRAINING)
    return TrainingJob.model_validate(
        {
            "apiVersion": "ddpk8s.dev/v1alpha1",
            "kind": "TrainingJob",
            "metadata": {"name": "reviews"},
            "spec": document,
        }
    )


def local(
    machine: Machine | None = None, nproc: int | None = None, nnodes: int = 1, **spec: Any
) -> Substitution:
    written = job(**spec)
    volumes = Volumes(written, HERE, BELOW)
    return substitute(written, machine or Machine(2, 0), volumes, Wish(nnodes, nproc), {"SET_KEY": "x"})
