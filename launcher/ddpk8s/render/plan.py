"""The two JSON files of a pod, and the ConfigMaps that carry them, the agent and the code."""

import hashlib
import json
from base64 import b64encode
from functools import cache
from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.agent_plan import Place, agent_plan, training_file
from ddpk8s.render.archive import File, digest, pack
from ddpk8s.render.context import Context
from ddpk8s.render.errors import RenderProblems
from ddpk8s.spec.problems import error
from ddpk8s.spec.values import format_bytes

Json = dict[str, Any]
_LIMIT = 1024 * 1024


def plan_map(context: Context, master_address: str) -> Json:
    """Return the ConfigMap of the agent's plan and the trainer's configuration.

    Raises:
        RenderProblems: they are larger than a ConfigMap may be.
    """
    data = {"agent.json": _text(_plan(context, master_address))}
    training = training_file(context.job, context.run_id)
    if training is not None:
        data["training.json"] = _text(training)
    size = sum(len(text.encode()) for text in data.values())
    if size > _LIMIT:
        field = "spec.training" if training is not None else "spec.entrypoint.args"
        text = f"makes a ConfigMap of {format_bytes(size)}, but {format_bytes(_LIMIT)} is the most that one holds"
        raise RenderProblems([error(field, text, "put long values into a file on a volume of spec.storage")])
    total = hashlib.sha256(_text(data).encode()).hexdigest()[:10]
    return _config_map(context, f"{context.name}-plan-{total}", {"data": data})


def agent_map(context: Context) -> Json:
    """Return the ConfigMap of the agent."""
    name = f"{context.name}-agent-{digest(context.agent)}"
    return _config_map(context, name, {"binaryData": {c.AGENT_FILE: _packed(context.agent)}})


def code_map(context: Context) -> Json | None:
    """Return the ConfigMap of the user's code; None without any."""
    if context.code is None:
        return None
    name = f"{context.name}-code-{digest(context.code)}"
    return _config_map(context, name, {"binaryData": {c.ARCHIVE_FILE: _packed(context.code)}})


def gang_port(context: Context) -> int:
    """Return the port of node rank 0's agent: by the job's name where pods of other jobs may be on the node."""
    if not context.host_network:
        return c.GANG_PORT
    number = int(hashlib.sha256(f"{context.job.metadata.namespace}/{context.name}".encode()).hexdigest(), 16)
    return c.GANG_PORTS[number % len(c.GANG_PORTS)]


def _plan(context: Context, master_address: str) -> Json:
    resources, is_alone = context.spec.resources, context.spec.topology.nnodes == 1
    place = Place(
        training_file=c.TRAINING_FILE,
        state_directory=c.STATE_DIRECTORY,
        termination_file=c.TERMINATION_FILE,
        working_directory=None if context.code is None else c.CODE_DIRECTORY,
        # Where nobody said a size the node decides how much of the 8Gi there is.
        shared_memory=resources.shared_memory is not None or resources.memory is not None,
        master_address="127.0.0.1" if is_alone else master_address,  # no need to wait for a name
        gang_port=None if is_alone else gang_port(context),
        launch_id=context.launch_id,
    )
    plan = agent_plan(context.job, context.run_id, place)
    if not resources.gpu_resource.startswith("nvidia.com/"):
        plan["checks"]["gpus"] = 0  # the agent counts NVIDIA's devices only
    # The container has the variables already, where people look for them and the pod template can change them.
    return {**plan, "env": {}}


def _config_map(context: Context, name: str, content: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": context.metadata(name),
        "immutable": True,
        **content,
    }


@cache
def _packed(files: tuple[File, ...]) -> str:
    return b64encode(pack(files)).decode("ascii")


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
