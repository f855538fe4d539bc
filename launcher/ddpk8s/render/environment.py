"""Environment variables of our container: the launcher's, then the profile's, the job's, and its secrets."""

from collections.abc import Mapping
from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.context import Context
from ddpk8s.spec.values import parse_quantity

Json = dict[str, Any]
_FIELDS = {
    "DDPK8S_NODE_NAME": "spec.nodeName",
    "DDPK8S_POD_IP": "status.podIP",
    "DDPK8S_POD_NAME": "metadata.name",
    "DDPK8S_POD_UID": "metadata.uid",
}


def environment(context: Context, rank: Json) -> list[Json]:
    """Return the environment of our container; `rank` is the backend's way to tell a pod its node rank.

    Of two variables with one name the job's own stays: no name is there twice.
    """
    fields = [{"name": name, "valueFrom": field_ref(path)} for name, path in _FIELDS.items()]
    profile = {name: line.value for name, line in context.extras.env.items()}
    literal = {**_ours(context), **profile, **_escaped(context.spec.env)}
    secrets = [
        {"name": secret.env, "valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}}
        for secret in sorted(context.spec.secrets, key=lambda secret: secret.env)
    ]
    taken = {secret["name"] for secret in secrets}
    values = [{"name": name, "value": value} for name, value in sorted(literal.items()) if name not in taken]
    return [rank, *fields, *values, *secrets]


def field_ref(path: str) -> Json:
    """Return the source of a variable that tells a pod something of itself."""
    return {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}


def rank_environment(context: Context) -> list[Json]:
    """Return what init containers of the user get to know of the gang."""
    spec = context.spec
    values = {
        "DDPK8S_JOB": context.name,
        "DDPK8S_NNODES": str(spec.topology.nnodes),
        "DDPK8S_NPROC_PER_NODE": str(spec.nproc_per_node),
        "DDPK8S_RUN_ID": context.run_id,
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _ours(context: Context) -> dict[str, str]:
    code = {} if context.code is None else {
        "DDPK8S_CODE_ARCHIVE": f"{c.ARCHIVE_DIRECTORY}/{c.ARCHIVE_FILE}",
        "DDPK8S_CODE_DIRECTORY": c.CODE_DIRECTORY,
    }  # fmt: skip
    # Without a line for the user in /etc/passwd, Python looks for its name here.
    home = {"HOME": c.HOME_DIRECTORY, "USER": "ddpk8s"}
    # The operator adds PYTHONUNBUFFERED itself, after ours, and one name must not be there twice.
    buffering = {} if context.spec.backend == "PyTorchJob" else {"PYTHONUNBUFFERED": "1"}
    return {**code, **home, **buffering, **_threads(context)}


def _threads(context: Context) -> dict[str, str]:
    """Return the threads of each process: without a limit a process sees all cores of the node, not its share."""
    cpu = context.spec.resources.cpu
    if cpu is None:
        return {}
    return {"OMP_NUM_THREADS": str(max(1, int(parse_quantity(cpu) / context.spec.nproc_per_node)))}


def _escaped(values: Mapping[str, str]) -> dict[str, str]:
    """Return values as they stand, which is what `ddpk8s run` gives: Kubernetes would replace `$(NAME)`, `$$`."""
    return {
        name: value.replace("$", "$$") if "$(" in value or "$$" in value else value
        for name, value in values.items()
    }
