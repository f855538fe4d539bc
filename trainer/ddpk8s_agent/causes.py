"""The causes of a failed attempt, one function each; `verdict` goes down their list."""

from ddpk8s_agent.classes import Class
from ddpk8s_agent.evidence import Evidence
from ddpk8s_agent.kinds import Kind, Verdict
from ddpk8s_agent.patterns import PORT_TAKEN
from ddpk8s_agent.wording import also, describe, describe_hung, describe_loss, list_ranks, named, signal_name


def own_failure(evidence: Evidence, classes: dict[int, Class]) -> Verdict:
    """Return the verdict on an attempt in which a rank failed by itself."""
    cause = next(end for end in evidence.ends if classes[end.rank] is Class.OWN)
    victims = [end.rank for end in evidence.ends if classes[end.rank] in (Class.WAITED, Class.CUT_OFF)]
    message = describe(cause, evidence) + also(cause, evidence)
    message += f"; {list_ranks(victims)} failed only because of that" if victims else ""
    error = cause.error or {}
    return Verdict(
        Kind.FAILED,
        str(error.get("reason") or ("WorkerKilled" if cause.exit_code < 0 else "WorkerFailed")),
        message,
        hint=error.get("hint"),
        rank=cause.rank,
        node=evidence.node_of(cause.rank),
        exit_code=cause.exit_code,
        log=cause.log,
        repeats=bool(error.get("repeats")),
    )


def launcher_failed(evidence: Evidence) -> Verdict:
    """Return the verdict on an attempt of which no rank is to blame."""
    code, node = evidence.launcher_code, evidence.launcher_node if evidence.nproc else None
    on = f" on node {node}" if node is not None else ""
    if evidence.launcher == "error":
        if any(text in evidence.launcher_message for text in PORT_TAKEN):
            message = "the port of torchrun was taken just before it started"
            return Verdict(Kind.PORT_TAKEN, "PortTaken", message, node=node)
        message = f"torchrun failed{on}: {evidence.launcher_message}"
        return Verdict(Kind.FAILED, "LauncherFailed", message, node=node, exit_code=code)
    how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    message = f"torchrun{on} {how}, its workers were ended"
    return Verdict(Kind.FAILED, "LauncherDied", message, node=node, exit_code=code)


def left_early(left: list[int], evidence: Evidence, classes: dict[int, Class]) -> Verdict:
    """Return the verdict on ranks that left with 0, while others were training."""
    others = list_ranks([end.rank for end in evidence.ends if classes[end.rank] is not Class.ENDED])
    who = named(left[0], evidence)
    message = f"{who} left early with exit code 0 while others were training"
    message += f" ({others} lost it)" if others else ""
    return Verdict(
        Kind.FAILED, "LeftEarly", message, rank=left[0], node=evidence.node_of(left[0]), exit_code=0
    )


def hung(evidence: Evidence) -> Verdict:
    """Name the rank that the others wait for: stopped, or elsewhere than in a collective, or the last in steps."""
    if evidence.unfinished:
        late = [end.rank for end in evidence.ends]
        return Verdict(
            Kind.FAILED,
            "Hang",
            f"{list_ranks(sorted(late)) or 'a rank'} did not leave after the others had",
            rank=min(late, default=None),
            node=evidence.node_of(min(late)) if late else None,
            log=next(
                (rank.stack for rank in evidence.hung if rank.stack), evidence.ends[0].log if late else ()
            ),
            certain=False,
        )
    ranks = sorted(evidence.hung, key=lambda rank: rank.rank)
    steps = {rank.step for rank in ranks}
    candidates = (
        [rank for rank in ranks if rank.stopped],
        [rank for rank in ranks if rank.waits is False] if any(rank.waits for rank in ranks) else [],
        [rank for rank in ranks if rank.step == min(s for s in steps if s is not None)]
        if len(steps) > 1 and None not in steps
        else [],
    )
    lagging = next((found for found in candidates if found and len(found) < len(ranks)), [])
    cause = lagging[0] if lagging else None
    return Verdict(
        Kind.FAILED,
        "Hang",
        describe_hung(lagging, evidence),
        hint=None if lagging else "every rank stands still: look at the stacks in the logs of the attempt",
        rank=cause.rank if cause else None,
        node=evidence.node_of(cause.rank) if cause else None,
        log=cause.stack if cause else ranks[0].stack,
        certain=len(lagging) == 1,
    )


def lost(evidence: Evidence) -> Verdict:
    """Return the verdict on an attempt that ended with the loss of a node."""
    node = evidence.lost[0][0]
    reason = "NodeLost" if len(evidence.lost) == 1 else "NodesLost"
    return Verdict(Kind.LOST, reason, describe_loss(evidence.lost), node=node)


def only_victims(evidence: Evidence, classes: dict[int, Class]) -> Verdict:
    """Nobody shows an error of its own. Who fell silent while others waited is as good as it gets."""
    lowest = min(classes.values())
    silent = [end for end in evidence.ends if classes[end.rank] is Class.ENDED]
    if lowest is Class.WAITED and silent and 2 * len(silent) < len(evidence.ends):
        message = f"{named(silent[0].rank, evidence)} fell silent: others waited for it in vain"
        return Verdict(
            Kind.FAILED,
            "Hang",
            message,
            rank=silent[0].rank,
            node=evidence.node_of(silent[0].rank),
            log=silent[0].log,
            certain=False,
        )
    cause = next(end for end in evidence.ends if classes[end.rank] is lowest)
    message = describe(cause, evidence) + also(cause, evidence)
    message += "; it lost a peer, and no rank shows an error of its own, so it need not be the cause"
    return Verdict(
        Kind.FAILED,
        "WorkerKilled" if cause.exit_code < 0 else "WorkerFailed",
        message,
        rank=cause.rank,
        node=evidence.node_of(cause.rank),
        exit_code=cause.exit_code,
        log=cause.log,
        certain=False,
    )
