"""Whether the checkpoint directory is the same place on every node: node 0 leaves a mark, all look for it."""

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ddpk8s_agent.plan import Plan

FIELD = "spec.training.checkpoint.directory"
HINT = (
    "checkpoints need a volume that all nodes mount: a PersistentVolumeClaim with access mode ReadWriteMany, "
    "or NFS, in spec.storage"
)
_LOOK_SECONDS = 0.5


def leave_mark(plan: Plan) -> str:
    """Leave a mark in the checkpoint directory; return what to look for, empty if there is nothing to compare.

    Each mark has a name of its own: a network file system may remember for a minute that a name was not there, or
    what a file held, but nobody has ever asked for this one.
    """
    if plan.checkpoint_directory is None or plan.nnodes == 1:
        return ""
    nonce = secrets.token_hex(8)
    with suppress(OSError):  # that it can be written to is another check
        _mark(plan, nonce).parent.mkdir(parents=True, exist_ok=True)
        _remove_marks(plan)
        _write(_mark(plan, nonce), nonce)
        return nonce
    return ""


def keep_mark(plan: Plan, nonce: str) -> None:
    """Leave a mark again if it is gone: another agent of node rank 0 may have taken it for an old one."""
    if nonce and not _mark(plan, nonce).exists():
        with suppress(OSError):
            _write(_mark(plan, nonce), nonce)


def _write(path: Path, nonce: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(nonce)
        file.flush()
        os.fsync(file.fileno())


def remove_mark(plan: Plan, nonce: str) -> None:
    """Remove a mark that was left."""
    if nonce:
        with suppress(OSError):
            _mark(plan, nonce).unlink()


def problem_of_sharing(plan: Plan, nonce: str, seconds: float, stopped: Callable[[], bool]) -> str:
    """Return why checkpoints written here would not be seen everywhere; empty if they are.

    Args:
        plan: The job.
        nonce: What node 0 left; empty for no mark.
        seconds: How long to look: caches of network file systems need a moment.
        stopped: Whether to give up looking, since this agent is to stop.
    """
    if not nonce.isalnum() or plan.checkpoint_directory is None:
        return ""
    path, end = _mark(plan, nonce), time.monotonic() + seconds
    while not _sees(path):
        if stopped():
            return ""
        if time.monotonic() > end:
            return (
                f"{FIELD}: node {plan.node_rank} does not see in {plan.checkpoint_directory} what node 0 wrote "
                "there, so it is not the same directory on both"
            )
        time.sleep(_LOOK_SECONDS)
    return ""


def _sees(path: Path) -> bool:
    with suppress(OSError):
        os.scandir(path.parent).close()  # has caches of the directory look whether they are still true
        return path.read_text(encoding="utf-8") == path.name.split(".")[-2]
    return False


def _mark(plan: Plan, nonce: str) -> Path:
    return Path(plan.checkpoint_directory or ".") / ".ddpk8s" / f"{plan.token}.{nonce}.mark"


def _remove_marks(plan: Plan) -> None:
    """Remove what agents of this launch left that were killed."""
    for path in _mark(plan, "x").parent.iterdir():
        if path.name.startswith(f"{plan.token}.") and path.suffix == ".mark":
            path.unlink(missing_ok=True)
