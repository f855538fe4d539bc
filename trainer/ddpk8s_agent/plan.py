"""What the agent is told: one JSON file, written by the launcher."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
_OF_THIS_NODE = ("stateDirectory", "terminationMessagePath", "masterAddr", "checks", "shim")


class Mistake(Exception):
    """Something that cannot work, and what to change."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Command:
    """What each worker runs: a module, or a script in its directory."""

    module: str | None
    script: str | None
    args: tuple[str, ...]
    working_directory: str | None

    @property
    def name(self) -> str:
        """Module or script, for messages."""
        return self.module or self.script or ""


@dataclass(frozen=True)
class PathCheck:
    """A path that must be usable; `field` is the place in the job file that names it."""

    path: str
    field: str
    hint: str | None = None


@dataclass(frozen=True)
class Checks:
    """What preflight looks at besides the command itself. None or 0 leaves a check out."""

    shared_memory_bytes: int | None = None
    gpus: int = 0
    readable: tuple[PathCheck, ...] = ()
    writable: tuple[PathCheck, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Everything the agent needs to know of a job.

    Attributes:
        job: Name of the job.
        run_id: Identity of the run; a restart continues it.
        nnodes: Number of nodes.
        node_rank: This node, from 0.
        nproc_per_node: Workers on each node.
        master_addr: Address of node rank 0.
        master_port: Port of torchrun's store; None takes a free one.
        gang_port: Port on which node 0's agent listens; None with a single node.
        launch_id: Names one launch of the run; a new one counts failures anew.
        start_deadline_seconds: Time for all nodes to be here.
        hang_timeout_seconds: Without progress of any rank; None never ends an attempt for that.
        shim: Stands in the place of the agent's own shim, to run without torch; None outside of tests.
        spec_hash: Of everything here that must be alike on all nodes.
        command: What each worker runs.
        env: Environment of the workers, on top of the agent's own.
        max_restarts: Failures after which the gang starts again.
        grace_period_seconds: Time between SIGTERM and the kill.
        checks: What preflight looks at.
        checkpoint_directory: Directory of this job's checkpoints, or None with a script of the user.
        progress_regex: Finds progress in the output of a script of the user.
        termination_message_path: Where the last word goes, or None.
        state_directory: The agent's own files: logs of the workers, status files.
    """

    job: str
    run_id: str
    nnodes: int
    node_rank: int
    nproc_per_node: int
    master_addr: str
    master_port: int | None
    command: Command
    env: Mapping[str, str]
    max_restarts: int
    grace_period_seconds: float
    gang_port: int | None = None
    launch_id: str = ""
    start_deadline_seconds: float = 900.0
    hang_timeout_seconds: float | None = None
    shim: str | None = None
    spec_hash: str = ""
    checks: Checks = field(default_factory=Checks)
    checkpoint_directory: str | None = None
    progress_regex: str | None = None
    termination_message_path: str | None = None
    state_directory: Path = Path()

    @property
    def ranks(self) -> range:
        """Global ranks of this node's workers."""
        first = self.node_rank * self.nproc_per_node
        return range(first, first + self.nproc_per_node)

    @property
    def token(self) -> str:
        """Names the launch: agents of another one never meet this gang."""
        return f"{self.run_id}.{self.launch_id}" if self.launch_id else self.run_id

    @property
    def reports_progress(self) -> bool:
        """Whether steps can be seen at all; silence means nothing where they cannot."""
        return self.command.module is not None or self.progress_regex is not None


def load_plan(path: Path) -> Plan:
    """Return the plan in the JSON file `path`.

    Raises:
        Mistake: the file cannot be read, or is not a plan this agent understands.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Mistake(f"cannot read the plan {path}: {error.strerror}") from error
    except ValueError as error:
        raise Mistake(f"the plan {path} is no JSON: {error}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise Mistake(
            f"the plan {path} has schema {schema!r}, this agent reads {SCHEMA}",
            "launcher and agent are of different versions: install the same one in both places",
        )
    try:
        return _parse(document)
    except (KeyError, TypeError, ValueError) as error:
        raise Mistake(f"the plan {path} is not complete: {error!r}") from error


def _parse(document: dict[str, Any]) -> Plan:
    command, checks = document["command"], document.get("checks") or {}
    return Plan(
        job=document["job"],
        run_id=document["runId"],
        nnodes=int(document["nnodes"]),
        node_rank=_node_rank(os.environ),
        nproc_per_node=int(document["nprocPerNode"]),
        master_addr=document.get("masterAddr") or "127.0.0.1",
        master_port=document.get("masterPort"),
        command=Command(
            module=command.get("module"),
            script=command.get("script"),
            args=tuple(command.get("args") or ()),
            working_directory=command.get("workingDirectory"),
        ),
        env=dict(document.get("env") or {}),
        max_restarts=int(document["maxRestarts"]),
        grace_period_seconds=float(document["gracePeriodSeconds"]),
        gang_port=document.get("gangPort"),
        launch_id=str(document.get("launchId") or ""),
        start_deadline_seconds=float(document.get("startDeadlineSeconds") or 900),
        hang_timeout_seconds=_optional_seconds(document.get("hangTimeoutSeconds")),
        shim=document.get("shim"),
        spec_hash=_spec_hash(document),
        checks=Checks(
            shared_memory_bytes=checks.get("sharedMemoryBytes"),
            gpus=int(checks.get("gpus") or 0),
            readable=tuple(PathCheck(**check) for check in checks.get("readable") or ()),
            writable=tuple(PathCheck(**check) for check in checks.get("writable") or ()),
        ),
        checkpoint_directory=document.get("checkpointDirectory"),
        progress_regex=document.get("progressRegex"),
        termination_message_path=document.get("terminationMessagePath"),
        state_directory=Path(document["stateDirectory"]).absolute(),
    )


def _optional_seconds(value: Any) -> float | None:
    return None if value is None else float(value)


def _spec_hash(document: Mapping[str, Any]) -> str:
    """Return a hash of what must be alike on all nodes: all but the files of this one."""
    shared = {name: value for name, value in document.items() if name not in _OF_THIS_NODE}
    return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()[:12]


def _node_rank(environment: Mapping[str, str]) -> int:
    """Return this node's rank: ours, else the completion index of an Indexed Job, else 0."""
    return int(environment.get("DDPK8S_NODE_RANK") or environment.get("JOB_COMPLETION_INDEX") or 0)
