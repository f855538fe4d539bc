"""What an attempt came to, and who is to blame: pure, from the evidence of all nodes; see `classes`."""

from ddpk8s_agent import exitcodes
from ddpk8s_agent.causes import hung, launcher_failed, left_early, lost, only_victims, own_failure
from ddpk8s_agent.classes import Class, classify
from ddpk8s_agent.evidence import Evidence, RankEnd
from ddpk8s_agent.kinds import Kind, Verdict
from ddpk8s_agent.lastwords import own_words
from ddpk8s_agent.wording import list_ranks

__all__ = ["Kind", "Verdict", "judge"]

_REPEATS_AT_ONCE = frozenset(
    (
        *("ModuleNotFoundError", "ImportError", "SyntaxError", "IndentationError", "TabError"),
        "FileNotFoundError",
    )
)
_START_SECONDS = 120.0
"""Before that a script whose steps cannot be seen counts as still starting."""
_VICTIMS = (Class.WAITED, Class.CUT_OFF)
_GONE = ("silent", "killed", "stuck", "gone")
"""Nobody knows what the ranks of such a node did: who left with 0 may have left because of them."""


def judge(evidence: Evidence, *, first: bool = False) -> Verdict:
    """Return what the attempt came to; `first` says that no attempt failed before it."""
    lingers = evidence.unfinished or evidence.hung
    # The result is complete, whatever a rank met on its way out.
    complete = evidence.finished and (lingers or not (evidence.stop_requested or _gone(evidence)))
    if evidence.launcher == "finished" or complete:
        return _trained(evidence)
    if evidence.stop_requested:
        return _stopped(evidence)
    classes = {end.rank: classify(end) for end in evidence.ends}
    mistakes = [end for end in evidence.ends if classes[end.rank] is Class.MISTAKE]
    if mistakes:
        return _mistake(mistakes, evidence)
    acting = [end for end in evidence.ends if classes[end.rank] is not Class.ENDED]
    if any(end.exit_code == exitcodes.STOPPED for end in acting) and all(
        end.exit_code == exitcodes.STOPPED or classes[end.rank] in _VICTIMS for end in acting
    ):
        return _stopped(evidence)
    if first and _fails_at_its_start(evidence):
        return _broken_script(evidence)
    if Class.OWN in classes.values():
        return own_failure(evidence, classes)
    return _without_culprit(evidence, classes)


def _without_culprit(evidence: Evidence, classes: dict[int, Class]) -> Verdict:
    """Go down the list of causes that no rank shows by an error of its own."""
    if evidence.launcher in ("error", "died"):
        return launcher_failed(evidence)
    left = [rank for rank in evidence.ranks if rank not in classes]
    # If those that hang do not wait for others, then these had left as they should.
    waiting = all(rank.waits for rank in evidence.hung) if evidence.hung else not evidence.unfinished
    if left and waiting and evidence.launcher == "failed" and not _gone(evidence):
        return left_early(left, evidence, classes)
    if evidence.hung or evidence.unfinished:
        return hung(evidence)
    if evidence.lost:
        return lost(evidence)
    if min(classes.values(), default=Class.ENDED) in _VICTIMS:
        return only_victims(evidence, classes)
    message = "the attempt ended, and no rank shows why"
    return Verdict(Kind.FAILED, "Unexplained", message, certain=False)


def _gone(evidence: Evidence) -> bool:
    return any(how in _GONE for _, how in evidence.lost)


def _trained(evidence: Evidence) -> Verdict:
    message = "training finished"
    late = sorted(end.rank for end in evidence.ends)
    if late and evidence.launcher != "finished":
        message += f"; {list_ranks(late)} did not leave in order afterwards"
    return Verdict(Kind.TRAINED, "Finished", message, exit_code=0)


def _stopped(evidence: Evidence) -> Verdict:
    saved = ""
    if evidence.stopped.get("checkpoint"):  # without one, the trainer stopped but did not save
        saved = f", the state of step {evidence.stopped.get('step')} is saved"
    return Verdict(Kind.STOPPED, "Stopped", f"stopped as asked{saved}", exit_code=exitcodes.STOPPED)


def _mistake(mistakes: list[RankEnd], evidence: Evidence) -> Verdict:
    end = next((end for end in mistakes if end.error), mistakes[0])
    error = end.error or {}
    last = end.log[-1].strip() if end.log else None  # who leaves with 78 says why
    message = error.get("message") or own_words(end) or last
    message = message or f"rank {end.rank} left with exit code 78 without a word"
    return Verdict(
        Kind.MISTAKE,
        str(error.get("reason") or "Mistake"),
        str(message),
        hint=error.get("hint"),
        rank=end.rank,
        node=evidence.node_of(end.rank),
        exit_code=end.exit_code,
        log=() if end.error else end.log,
    )


def _fails_at_its_start(evidence: Evidence) -> bool:
    """Return whether a script of the user's fails on all ranks before it did anything, as it would again."""
    if evidence.step or evidence.seconds > _START_SECONDS or len(evidence.ends) < len(evidence.ranks):
        return False
    return bool(evidence.ends) and all(
        end.error is None and (own_words(end) or "").partition(":")[0] in _REPEATS_AT_ONCE
        for end in evidence.ends
    )


def _broken_script(evidence: Evidence) -> Verdict:
    end = evidence.ends[0]
    where = "all ranks" if len(evidence.ranks) > 1 else f"rank {end.rank}"
    return Verdict(
        Kind.MISTAKE,
        "ScriptMistake",
        f"{own_words(end)}, on {where} as the script starts",
        hint="correct the script, or what it needs in the image or the volumes",
        rank=end.rank,
        node=evidence.node_of(end.rank),
        exit_code=end.exit_code,
        log=end.log,
    )
