"""Everything that can be known to fail before anything starts; all mistakes at once, each with its field."""

import errno
import glob
import importlib.util
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from ddpk8s_agent.plan import Mistake, PathCheck, Plan

OLDEST_TORCH = (2, 4)
_PIP = f"{sys.executable} -m pip install"


def find_mistakes(plan: Plan) -> list[Mistake]:
    """Return all mistakes that can be seen from here."""
    return [
        *_topology(plan),
        *_packages(plan),
        *_script(plan),
        *_port(plan),
        *_shared_memory(plan),
        *_gpus(plan),
        *(mistake for check in plan.checks.readable for mistake in _readable(check)),
        *(mistake for check in plan.checks.writable for mistake in _writable(check)),
        *_writable(PathCheck(str(plan.state_directory), "the agent's own directory")),
        *_progress_regex(plan),
    ]


def _topology(plan: Plan) -> Iterator[Mistake]:
    if not 0 <= plan.node_rank < plan.nnodes:
        yield Mistake(
            f"spec.topology.nnodes is {plan.nnodes}, and this is node rank {plan.node_rank}, counted from 0",
            "DDPK8S_NODE_RANK or JOB_COMPLETION_INDEX in the environment of this agent is wrong",
        )
    if plan.nnodes > 1 and plan.gang_port is None:
        yield Mistake(
            f"spec.topology.nnodes is {plan.nnodes}, and the plan has no gangPort",
            "write the plan with this version of ddpk8s",
        )


def _packages(plan: Plan) -> Iterator[Mistake]:
    if importlib.util.find_spec("torch") is None:
        yield Mistake(
            f"spec.image: torch is not installed for {sys.executable}",
            f"use an image with torch, or install it: {_PIP} torch",
        )
    elif (version := _torch_version()) and version < OLDEST_TORCH:
        yield Mistake(
            f"spec.image: torch is {version[0]}.{version[1]}, and 2.4 is the oldest that works",
            "use an image with a newer torch",
        )
    if plan.command.module and importlib.util.find_spec(plan.command.module) is None:
        yield Mistake(
            f"spec.image: {plan.command.module} is not installed for {sys.executable}",
            f"use an image that has it, or install it: {_PIP} 'ddpk8s[train]'",
        )


def _torch_version() -> tuple[int, int] | None:
    """Return torch's major and minor version; None where torch came without metadata."""
    from importlib import metadata  # 15 ms that only a start needs

    try:
        match = re.match(r"(\d+)\.(\d+)", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        return None
    return (int(match[1]), int(match[2])) if match else None


def _script(plan: Plan) -> Iterator[Mistake]:
    directory = plan.command.working_directory
    if directory and not Path(directory).is_dir():
        yield Mistake(f"spec.entrypoint.code: {directory} is no directory", "correct the path")
        return
    if plan.command.script and not (Path(directory or ".") / plan.command.script).is_file():
        yield Mistake(
            f"spec.entrypoint.script: no file {plan.command.script} in {directory or Path.cwd()}",
            "the script is named relative to spec.entrypoint.code",
        )


def _port(plan: Plan) -> Iterator[Mistake]:
    if plan.master_port is None or plan.node_rank != 0:
        return
    problem = bind_problem(plan.master_port)
    if problem:
        yield Mistake(
            f"spec.topology.masterPort {plan.master_port} cannot be used: {problem}",
            "leave spec.topology.masterPort out, and a free port is taken",
        )


def bind_problem(port: int) -> str | None:
    """Return why a TCP port of this machine cannot be listened on, or None.

    SO_REUSEADDR as torch does it: without it a port just used counts as taken for a minute (TIME_WAIT).
    """
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind(("", port))
            probe.listen()
        except OSError as error:
            return "another process listens on it" if error.errno == errno.EADDRINUSE else str(error.strerror)
    return None


def free_port() -> int:
    """Return a TCP port nobody listens on at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _shared_memory(plan: Plan) -> Iterator[Mistake]:
    wanted = plan.checks.shared_memory_bytes
    if not wanted:
        return
    try:
        status = os.statvfs("/dev/shm")
    except OSError as error:
        yield Mistake(
            f"spec.resources.sharedMemory: no /dev/shm here: {error.strerror}", "mount a tmpfs there"
        )
        return
    size = status.f_frsize * status.f_blocks
    if size < wanted:
        yield Mistake(
            f"spec.resources.sharedMemory is {wanted >> 20} MiB, but /dev/shm has {size >> 20} MiB",
            "mount an emptyDir with medium Memory at /dev/shm, or ask for less",
        )


def _gpus(plan: Plan) -> Iterator[Mistake]:
    if not plan.checks.gpus:
        return
    found = _count_gpus()
    if found < plan.checks.gpus:
        yield Mistake(
            f"spec.resources.gpu is {plan.checks.gpus}, but {found} GPUs are visible here",
            "check the device plugin of the node and the runtime class of the pod",
        )


def _count_gpus() -> int:
    """Return how many NVIDIA devices this container was given."""
    listed = os.environ.get("NVIDIA_VISIBLE_DEVICES", "all")
    if listed in ("", "none", "void"):
        return 0
    nodes = sum(1 for node in Path("/dev").iterdir() if re.fullmatch(r"nvidia\d+", node.name))
    # MIG slices have no device node of their own: the list is all there is.
    return nodes if listed == "all" else max(nodes, len(listed.split(",")))


def _readable(check: PathCheck) -> Iterator[Mistake]:
    path = Path(check.path)
    if not path.exists() and glob.has_magic(check.path) and glob.glob(check.path, recursive=True):  # noqa: PTH207 - absolute
        return
    try:
        if path.is_dir():
            next(os.scandir(path), None)
        else:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        yield Mistake(f"{check.field}: cannot read {check.path}: {_explain(error, path)}", check.hint)


def _writable(check: PathCheck) -> Iterator[Mistake]:
    """Make the directory and a file in it, as a checkpoint will; nothing less shows a full disk."""
    directory = Path(check.path)
    probe = directory / f".ddpk8s-probe-{os.getpid()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, b"\0" * 4096)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            probe.unlink()
    except OSError as error:
        yield Mistake(
            f"{check.field}: cannot write to {check.path}: {_explain(error, directory)}", check.hint
        )


def _explain(error: OSError, path: Path) -> str:
    """Return the cause in words that say what to change."""
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        part = next((p for p in (path, *path.parents) if p.exists() and not p.is_dir()), path)
        return f"{part} is a file, not a directory"
    if error.errno == errno.ENOENT:
        part = next((p for p in path.parents if p.exists()), path)
        return (
            f"no such file or directory ({part} exists)"
            if part != path.parent
            else "no such file or directory"
        )
    if error.errno == errno.EACCES:
        return f"permission denied for uid {os.getuid()}, gid {os.getgid()}"
    return {
        errno.EROFS: "the file system is read-only",
        errno.ENOSPC: "no space left on the device",
        errno.EDQUOT: "the disk quota is used up",
    }.get(error.errno or 0, str(error.strerror))


def _progress_regex(plan: Plan) -> Iterator[Mistake]:
    if plan.progress_regex is not None:
        try:
            re.compile(plan.progress_regex)
        except re.error as error:
            yield Mistake(f"spec.failurePolicy.progressRegex is no regular expression: {error}", "correct it")
