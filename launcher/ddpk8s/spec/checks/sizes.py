"""Texts that are too long for where they go: the kernel's arguments, Kubernetes' annotations."""

from collections.abc import Iterator, Mapping
from typing import Any

from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error
from ddpk8s.spec.values import format_bytes

MOST_OF_A_STRING = 128 * 1024
"""Linux starts no program with a longer argument or variable (MAX_ARG_STRLEN), its final zero included."""
MOST_OF_ANNOTATIONS = 256 * 1024
_FILE = "put it into a file on a volume of spec.storage, and pass the path"


def check_sizes(job: TrainingJob) -> Iterator[Problem]:
    """Yield texts that no pod, and no process, can be given."""
    spec = job.spec
    for name, value in spec.env.items():
        yield from _check_string(("spec", "env", name), f"{name}={value}")
    for i, argument in enumerate(spec.entrypoint.args if spec.entrypoint else ()):
        yield from _check_string(("spec", "entrypoint", "args", i), argument)
    yield from _check_annotations(("metadata", "annotations"), job.metadata.annotations)
    metadata = spec.pod_template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict):
        yield from _check_annotations(("spec", "podTemplate", "metadata", "annotations"), annotations)


def _check_string(path: Path, text: str) -> Iterator[Problem]:
    size = len(text.encode()) + 1
    if size > MOST_OF_A_STRING:
        limit = format_bytes(MOST_OF_A_STRING)
        yield error(
            path, f"has {format_bytes(size)}, but Linux starts no process with more than {limit}", _FILE
        )


def _check_annotations(path: Path, annotations: Mapping[str, Any]) -> Iterator[Problem]:
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > MOST_OF_ANNOTATIONS:
        limit = format_bytes(MOST_OF_ANNOTATIONS)
        yield error(
            path, f"have {format_bytes(size)} together, but {limit} is the most that Kubernetes keeps"
        )
