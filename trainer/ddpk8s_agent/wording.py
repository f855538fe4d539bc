"""Ranks, nodes and ends in words."""

import signal

from ddpk8s_agent.evidence import Evidence, HungRank, RankEnd
from ddpk8s_agent.lastwords import own_words

_SIGNAL_HINTS: dict[int, str] = {
    signal.SIGKILL: "not by this agent; the kernel does that when memory runs out",
    signal.SIGTERM: "not by this agent; somebody else asked this one process to stop",
}
_OUT_OF_MEMORY = "the kernel killed it: host memory ran out; raise spec.resources.memory"
_LOSSES = {
    "silent": "has been silent: the node, its network or its agent is gone",
    "killed": "closed its connection without a word: its agent was killed",
    "left": "left, as it was asked to",
    "cut": "lost its connection to node 0 for a while",
    "gone": "is gone, and so is whoever saw how",
    "stuck": "did not end its processes in time",
    "garbled": "sent evidence that cannot be read",
    "unstarted": "never started",
}


def named(rank: int, evidence: Evidence) -> str:
    """Return a rank with its node, where there are several."""
    node = evidence.node_of(rank)
    return f"rank {rank}" if node is None else f"rank {rank} on node {node}"


def describe(end: RankEnd, evidence: Evidence) -> str:
    """Return how a rank ended."""
    who = f"{named(end.rank, evidence)} (pid {end.pid})"
    detail = own_words(end)
    if end.exit_code < 0:
        why = detail if end.closed else _SIGNAL_HINTS.get(-end.exit_code, detail)
        if end.exit_code == -signal.SIGKILL and evidence.oom and not end.closed:
            why = _OUT_OF_MEMORY
        return f"{who} was killed by {signal_name(-end.exit_code)}" + (f" ({why})" if why else "")
    return f"{who} failed with exit code {end.exit_code}" + (f": {detail}" if detail else "")


def also(cause: RankEnd, evidence: Evidence) -> str:
    """Say on how many ranks the same exception was raised, if on half of them or more."""
    kind = (own_words(cause) or "").partition(":")[0]
    same = [
        end
        for end in evidence.ends
        if cause.exit_code > 0
        and end.exit_code == cause.exit_code
        and (own_words(end) or "").partition(":")[0] == kind
    ]
    if len(same) < 2 or 2 * len(same) < len(evidence.ranks):
        return ""
    return f" (the same on {len(same)} of {len(evidence.ranks)} ranks)"


def describe_hung(lagging: list[HungRank], evidence: Evidence) -> str:
    """Return who the others waited for."""
    age = min(rank.age for rank in evidence.hung)
    if not lagging:
        return f"no progress for {age:.0f} s, on every rank alike"
    names = ", ".join(named(rank.rank, evidence) for rank in lagging[:8])
    cause = lagging[0]
    if cause.stopped:
        why = "stopped by a signal (SIGSTOP, or a debugger)"
    elif cause.waits is False and any(rank.waits for rank in evidence.hung):
        why = f"busy elsewhere while the others wait for it{_where(cause)}"
    else:
        why = f"behind the others, at step {cause.step}{_where(cause)}"
    return f"no progress for {age:.0f} s: {names} {'is' if len(lagging) == 1 else 'are'} {why}"


def _where(rank: HungRank) -> str:
    return f" ({rank.stack[0].strip()})" if rank.stack else ""


def describe_loss(lost: tuple[tuple[int, str], ...]) -> str:
    """Return which nodes are gone, and how."""
    parts = [f"node {node} {_LOSSES.get(how, 'is gone')}" for node, how in lost[:8]]
    return "; ".join(parts) + (f"; and {len(lost) - 8} more" if len(lost) > 8 else "")


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def list_ranks(ranks: list[int]) -> str:
    """Return ranks in words; empty for none."""
    if not ranks:
        return ""
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, sorted(ranks)))
