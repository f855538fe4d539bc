"""From the evidence of all nodes to one piece of evidence on the whole attempt."""

from typing import Any

from ddpk8s_agent import exitcodes, wireform
from ddpk8s_agent.classes import Class, classify
from ddpk8s_agent.evidence import Evidence
from ddpk8s_agent.gang.ending import Ending


def merge(ending: Ending, nnodes: int, nproc: int) -> Evidence:
    """Return the evidence of all nodes as one; the ends of nodes that spoke first come first."""
    nodes: dict[int, Evidence] = {}
    lost = dict(ending.lost)
    for node, document in ending.evidence.items():
        try:
            nodes[node] = wireform.from_document(dict(document))
        except (KeyError, TypeError, ValueError, AttributeError):
            lost[node] = "garbled"
    ordered = [node for node in ending.order if node in nodes]
    ordered += [node for node in sorted(nodes) if node not in ordered]
    parts = [nodes[node] for node in ordered]
    launcher = _launcher({node: nodes[node] for node in ordered}, nnodes)
    hung = ending.hung_seconds is not None or ending.unfinished
    return Evidence(
        launcher=launcher[0],
        launcher_code=launcher[1],
        launcher_message=launcher[2],
        launcher_node=launcher[3],
        ranks=tuple(sorted(rank for part in parts for rank in _known_ranks(part))),
        ends=tuple(end for part in parts for end in part.ends),
        stop_requested=_stop_counts(ending, parts),
        step=max((s for s in (ending.step, *(part.step for part in parts)) if s is not None), default=None),
        seconds=max((part.seconds for part in parts), default=0.0),
        finished=next((part.finished for part in parts if part.finished), {}),
        stopped=next((part.stopped for part in parts if part.stopped), {}),
        hung=tuple(rank for part in parts for rank in part.hung) if hung else (),
        oom=any(part.oom for part in parts),
        nproc=nproc if nnodes > 1 else 0,
        lost=tuple(sorted(lost.items())),
        unfinished=ending.unfinished,
    )


def _stop_counts(ending: Ending, parts: list[Evidence]) -> bool:
    """Return whether somebody asked for a stop, before anything had failed or hung by itself."""
    # What an earlier coordinator ended for that reason says so, even if those that were asked are gone.
    stop = bool(ending.stopping) or any(part.stop_requested or part.drained == "stop" for part in parts)
    if not stop or not ending.failed_first:
        return stop
    ends = [end for part in parts for end in part.ends if end.exit_code != exitcodes.STOPPED]
    own = any(classify(end) <= Class.OWN for end in ends)
    launcher = any(part.launcher in ("error", "died") and not part.drained for part in parts)
    return not (own or launcher or ending.hung_seconds is not None)


def _known_ranks(part: Evidence) -> tuple[int, ...]:
    """Return the ranks of a node that left with 0, or whose ends are told."""
    if part.launcher not in ("failed", "finished"):
        return ()
    if part.drained == "lost":  # what then left with 0 did so because it was asked to
        return tuple(end.rank for end in part.ends)
    return part.ranks


def _launcher(nodes: dict[int, Evidence], nnodes: int) -> tuple[Any, int, str, int]:
    """Return what torchrun did, of all nodes: outcome, code, message, node; the worst outcome counts."""
    done = [part for part in nodes.values() if part.launcher == "finished"]
    if len(done) == nnodes and not any(part.drained and not part.finished for part in done):
        return "finished", 0, "", 0
    for outcome in ("error", "died"):
        for node, part in nodes.items():
            if part.launcher == outcome and not part.drained:
                return outcome, part.launcher_code, part.launcher_message, node
    if any(part.launcher == "failed" for part in nodes.values()):
        return "failed", 1, "", 0
    return "stopped", 1, "", 0
