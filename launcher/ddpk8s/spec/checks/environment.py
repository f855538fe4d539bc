"""Environment variables and secrets: who owns which name, and no secret in the file."""

import re
from collections.abc import Iterator

from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error, warning
from ddpk8s.spec.secrecy import is_secret_name, is_secret_value

_TORCHRUN = re.compile(
    r"(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|ROLE_NAME|NODE_RANK|MASTER_(ADDR|PORT)|TORCHELASTIC_.*|TORCH_ELASTIC_.*|PET_.*"
)
_LAUNCHER = re.compile(r"DDPK8S_.*|JOB_COMPLETION_INDEX")
_OWNED_LABELS = re.compile(r"ddpk8s\.dev/.*|batch\.kubernetes\.io/.*|training\.kubeflow\.org/.*")
_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def check_environment(job: TrainingJob) -> Iterator[Problem]:
    """Yield problems of `env`, `secrets` and the labels."""
    for name, value in job.spec.env.items():
        path: Path = ("spec", "env", name)
        yield from check_owner(path, name)
        yield from _check_literal_secret(path, name, value)
        if name == "CUDA_VISIBLE_DEVICES":
            yield warning(path, "is set, so processes may not see the GPUs that Kubernetes gave the pod")
        if name == "NVIDIA_VISIBLE_DEVICES":
            hint = "remove it; spec.resources.gpu is how many GPUs a pod gets"
            yield error(path, "would give pods GPUs that the scheduler gave to others", hint)
    yield from _check_operators_own(job)
    yield from _check_secrets(job)
    yield from _check_labels(job)


def check_owner(path: Path, name: str) -> Iterator[Problem]:
    """Yield the problem of an environment variable that torchrun or the launcher sets itself."""
    if _TORCHRUN.fullmatch(name):
        hint = "remove it; spec.topology is where nodes, processes and the port are set"
        yield error(path, "is set by torchrun itself, differently in each process", hint)
    elif _LAUNCHER.fullmatch(name):
        yield error(path, "is set by the launcher itself", "remove it, or give your variable another name")


def _check_literal_secret(path: Path, name: str, value: str) -> Iterator[Problem]:
    if value.startswith(("/", "$(")) or not value:
        return
    if is_secret_name(name) or is_secret_value(value):
        hint = (
            f"put it into a Kubernetes Secret and write under spec.secrets: "
            f"{{name: SECRET, key: KEY, env: {name}}}; with `ddpk8s run` it comes from your own environment"
        )
        yield error(path, "looks like a secret, and secrets must not stand in the job file", hint)


def _check_operators_own(job: TrainingJob) -> Iterator[Problem]:
    """The operator appends this variable to ours, and the last of two with one name counts."""
    name = "PYTHONUNBUFFERED"
    if job.spec.backend == "PyTorchJob" and name in job.spec.env:
        hint = "remove it, which leaves it at 1, or use IndexedJob"
        text = "is set by the training operator itself, to 1, after ours"
        yield error(("spec", "env", name), text, hint, ["spec.backend"])


def _check_secrets(job: TrainingJob) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for i, secret in enumerate(job.spec.secrets):
        path: Path = ("spec", "secrets", i, "env")
        yield from check_owner(path, secret.env)
        if secret.env in job.spec.env:
            yield error(path, f"is {secret.env}, which spec.env sets too", "remove one of them")
        elif secret.env in seen:
            other = f"spec.secrets[{seen[secret.env]}].env"
            yield error(path, f"is {secret.env}, as is {other}", "remove one of them", [other])
        seen.setdefault(secret.env, i)


def _check_labels(job: TrainingJob) -> Iterator[Problem]:
    for section, labels in (("labels", job.metadata.labels), ("annotations", job.metadata.annotations)):
        for key in labels:
            path: Path = ("metadata", section, key)
            if key == _QUEUE_LABEL:
                yield error(
                    path, "is set from spec.scheduling.queue", "remove it and set spec.scheduling.queue"
                )
            elif _OWNED_LABELS.fullmatch(key):
                yield error(path, "is set by the launcher or by Kubernetes", "choose another prefix")
