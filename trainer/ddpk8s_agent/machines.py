"""The machines of this node, and the thread that serves them, made from its plan."""

import os
import resource
import secrets
import socket
import time
from pathlib import Path
from typing import Any

from ddpk8s_agent.attempt import next_attempt
from ddpk8s_agent.command import shutdown_seconds
from ddpk8s_agent.console import Console
from ddpk8s_agent.gang.coordinator import Coordinator
from ddpk8s_agent.gang.deciding import Decider
from ddpk8s_agent.gang.joining import Identity
from ddpk8s_agent.gang.ledger import Ledger, union
from ddpk8s_agent.gang.member import Member
from ddpk8s_agent.gang.network import Network
from ddpk8s_agent.gang.store import Store
from ddpk8s_agent.gang.timing import Timing
from ddpk8s_agent.gang.wire import listen
from ddpk8s_agent.plan import Mistake, Plan
from ddpk8s_agent.shared import leave_mark
from ddpk8s_agent.signals import StopRequest

_PORTS = range(29500, 29600)
"""For torchrun's store, where several nodes must agree on one; a network policy names them."""
_LISTEN_SECONDS = 15.0
_OTHER_FILES = 256


def timing_of(plan: Plan) -> Timing:
    """Return the time-outs of a job."""
    return Timing(
        start_deadline=plan.start_deadline_seconds,
        hang=plan.hang_timeout_seconds,
        grace=shutdown_seconds(plan),
        **_short_timing(),
    )


def _short_timing() -> dict[str, Any]:
    """Return time-outs from the environment, which tests shorten."""
    text = os.environ.get("DDPK8S_AGENT_TIMING", "")
    return {
        name: float(value) for name, _, value in (each.partition("=") for each in text.split(",") if each)
    }


def ledger_paths(plan: Plan) -> tuple[Path, Path | None]:
    """Return where the ledger is kept: on this node, and on the volume that all nodes share (by node 0)."""
    shared = (
        Path(plan.checkpoint_directory) / ".ddpk8s" / f"{plan.run_id}.json"
        if plan.checkpoint_directory
        else None
    )
    return plan.state_directory / "ledger.json", shared


def join(plan: Plan, store: Store, console: Console, stop: StopRequest) -> Network:
    """Start the machines of this node.

    Raises:
        Mistake: The port of the gang is taken.
    """
    base = next_attempt(plan.state_directory) - 1
    known = [ledger for ledger in store.load() if ledger.token == plan.token]
    # The attempts of this very launch are in its ledger; all others count as earlier ones.
    ledger = union(known[0], known[1:]) if known else Ledger(plan.token, base=base, attempt=base)
    inc = f"{os.environ.get('DDPK8S_POD_UID') or os.getpid()}-{secrets.token_hex(4)}"
    identity = Identity(plan.token, plan.node_rank, plan.nnodes, plan.nproc_per_node, plan.spec_hash, inc)
    timing, now = timing_of(plan), time.monotonic()
    coordinator = listener = None
    if plan.node_rank == 0:
        decider = Decider(
            max_restarts=plan.max_restarts,
            sees_progress=plan.reports_progress,
            sees_start=plan.command.module is not None,
            nnodes=plan.nnodes,
            nproc=plan.nproc_per_node,
        )
        coordinator = Coordinator(identity, ledger, timing, decider, _ports(plan), now)
        coordinator.mark = leave_mark(plan)
        _allow_files(plan.nnodes)
        listener = _listen(plan, stop) if plan.nnodes > 1 else None
    member = Member(identity, ledger, timing, now)
    address = (plan.master_addr, plan.gang_port or 0)
    return Network(member, coordinator, listener, address, timing, store, console.say, stop.waker.wake)


def _ports(plan: Plan) -> range:
    if plan.master_port:
        return range(plan.master_port, plan.master_port + 1)
    return _PORTS if plan.nnodes > 1 else range(0)


def _allow_files(nnodes: int) -> None:
    """Have room for a connection of every node, and for strangers; 1024 files are the usual limit."""
    wanted = 2 * nnodes + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _listen(plan: Plan, stop: StopRequest) -> socket.socket | None:
    """Listen for the other nodes; an agent that was just killed may have left the port for a moment."""
    end = time.monotonic() + _LISTEN_SECONDS
    while not stop.wait(0.0):
        try:
            return listen(plan.gang_port or 0)
        except OSError as error:
            if time.monotonic() > end:
                message = f"node 0 cannot listen on port {plan.gang_port}: {error.strerror}"
                raise Mistake(
                    message, "two jobs with hostNetwork on one node need different ports"
                ) from error
            stop.wait(0.2)
    return None
