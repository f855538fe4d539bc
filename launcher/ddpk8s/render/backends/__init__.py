"""The registry of backends: a module each, named in `spec.backend`."""

from ddpk8s.render.backends.base import Backend, Role
from ddpk8s.render.backends.indexed_job import IndexedJob
from ddpk8s.render.backends.pytorch_job import PyTorchJob

BACKENDS: dict[str, Backend] = {backend.name: backend for backend in (IndexedJob(), PyTorchJob())}

__all__ = ["BACKENDS", "Backend", "Role"]
