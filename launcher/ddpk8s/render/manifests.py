"""From a job to its objects: pure, so that the same job gives the same bytes anywhere."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ddpk8s.fabric import Additions
from ddpk8s.render.agent_archive import agent_files
from ddpk8s.render.archive import File, digest
from ddpk8s.render.backends import BACKENDS, Backend
from ddpk8s.render.context import Context
from ddpk8s.render.errors import RenderError, RenderProblems
from ddpk8s.render.hatch import Hatch, open_hatch
from ddpk8s.render.merge import Change
from ddpk8s.render.network import read_network
from ddpk8s.render.plan import agent_map, code_map, plan_map
from ddpk8s.render.pod import pod_template
from ddpk8s.render.policy import network_policy
from ddpk8s.render.resources import claim_template
from ddpk8s.render.schema import NEWEST, check_object, has_schema
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.paths import format_path
from ddpk8s.spec.values import show

Json = dict[str, Any]
_RUN_ID = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


@dataclass(frozen=True)
class Rendering:
    """The objects of a job, and what a person wants to know about them.

    Attributes:
        objects: In the order in which they are applied; the one that runs the pods is the last.
        context: What they were made from.
        backend: Which backend made them.
        changes: What the pod template replaced in ours.
    """

    objects: list[Json]
    context: Context
    backend: Backend
    changes: list[Change] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        """Identity of the run."""
        return self.context.run_id


def render(
    job: TrainingJob,
    *,
    run_id: str | None = None,
    launch_id: str = "",
    code: tuple[File, ...] | None = None,
    extras: Additions | None = None,
    version: str = NEWEST,
) -> Rendering:
    """Return the objects of a job.

    Args:
        job: A job without mistakes.
        run_id: Identity of the run; left out, one that follows from job and code.
        launch_id: Names this start of the run; a new one has all its restarts before it.
        code: Files of `spec.entrypoint.code`, as `read_code` gives them.
        extras: What the network needs; left out, what the job's profile says.
        version: Of Kubernetes, by whose schemas the objects are judged.

    Raises:
        RenderProblems: mistakes that show only here, each with its field.
        RenderError: the run id cannot be one.
    """
    context = _context(job, run_id, launch_id, code, extras or read_network(job))
    backend = BACKENDS[job.spec.backend]
    plan, agent = plan_map(context, backend.master_address(context)), agent_map(context)
    packed = code_map(context)
    maps = (_name(plan), _name(agent), None if packed is None else _name(packed))
    templates: dict[str, Json] = {}
    hatches: list[Hatch] = []
    for role in backend.roles(context):
        hatch = open_hatch(
            context, pod_template(context, maps, role.rank, backend.port_name), role.rank, version
        )
        hatches.append(hatch)
        templates[role.name] = hatch.template
    if hatches[0].problems:
        raise RenderProblems(hatches[0].problems)
    around = (plan, agent, packed, claim_template(context), *_extra_objects(context), network_policy(context))
    objects = [each for each in around if each is not None] + backend.objects(context, templates)
    for manifest in filter(has_schema, objects):
        _judge(manifest, version)
    return Rendering(objects, context, backend, hatches[0].changes)


def derived_run_id(job: TrainingJob, code: tuple[File, ...] | None) -> str:
    """Return the run id of a job that nobody gave one: equal for equal jobs with equal code."""
    text = json.dumps(job.to_document(), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(f"{text}\n{digest(code or ())}".encode()).hexdigest()[:12]


def _context(
    job: TrainingJob, run_id: str | None, launch_id: str, code: tuple[File, ...] | None, extras: Additions
) -> Context:
    if run_id is not None and not _RUN_ID.fullmatch(run_id):
        raise RenderError(
            f"the run id is {show(run_id)}, but must be lower-case letters, digits and `-`, 40 characters at most"
        )
    pod = job.spec.pod_template.get("spec") or {}
    host_network = pod.get("hostNetwork", extras.host_network)
    return Context(
        job=job,
        run_id=run_id or derived_run_id(job, code),
        launch_id=launch_id,
        extras=extras,
        code=code,
        agent=agent_files(),
        host_network=host_network is True,
    )


def _extra_objects(context: Context) -> list[Json]:
    """Return the profile's further objects, in the job's namespace and with its labels."""
    return [
        {**each, "metadata": {**context.metadata(_name(each)), **_without_labels(each["metadata"])}}
        for each in context.extras.objects
    ]


def _without_labels(metadata: Json) -> Json:
    return {key: value for key, value in metadata.items() if key not in ("labels", "namespace")}


def _name(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["name"])


def _judge(manifest: Mapping[str, Any], version: str) -> None:
    """Check an object as a whole; what users wrote in the pod template was judged before, with its place.

    Raises:
        RenderError: Kubernetes does not know such an object.
    """
    found = check_object(manifest, version)
    if found:
        first = found[0]
        raise RenderError(
            f"{manifest['kind']} {_name(manifest)}: {format_path(first.path)} {first.message}", first.hint
        )
