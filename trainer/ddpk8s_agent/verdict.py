"""Who failed first, and why: pure, from the evidence of one attempt.

Every rank gets a class, the lowest class present is the cause, and ties go to the one torchrun saw first:

    MISTAKE   exit 78
    OWN       an error of its own: an exception, an exit code, a signal nobody here sent
    LEFT      left with 0 while others were training
    WAITED    waited in vain for a peer        } victims: named only if there is nobody else,
    CUT_OFF   its peer was gone                } and then as uncertain
    ENDED     ended by torchrun, because another had failed: never the cause
"""

import signal
from dataclasses import dataclass
from enum import IntEnum

from ddpk8s_agent import exitcodes
from ddpk8s_agent.evidence import Evidence, RankEnd
from ddpk8s_agent.lastwords import TRACEBACK, cause_text, own_words
from ddpk8s_agent.patterns import CUT_OFF, PORT_TAKEN, WAITED

_REPEATS_AT_ONCE = frozenset(
    (
        *("ModuleNotFoundError", "ImportError", "SyntaxError", "IndentationError", "TabError"),
        "FileNotFoundError",
    )
)
_START_SECONDS = 120.0
"""Before that a script whose steps cannot be seen counts as still starting."""
_SIGNAL_HINTS: dict[int, str] = {
    signal.SIGKILL: "not by this agent; the kernel does that when memory runs out",
    signal.SIGTERM: "not by this agent; somebody else asked this one process to stop",
}


class Kind(IntEnum):
    """What an attempt counts as."""

    TRAINED = 0
    STOPPED = 1
    MISTAKE = 2
    FAILED = 3
    PORT_TAKEN = 4


class Class(IntEnum):
    """How near a rank is to the cause; see the head of this file."""

    MISTAKE = 0
    OWN = 1
    LEFT = 2
    WAITED = 3
    CUT_OFF = 4
    ENDED = 5


@dataclass(frozen=True)
class Verdict:
    """What one attempt came to.

    Attributes:
        kind: What it counts as.
        reason: One CamelCase word.
        message: What happened, in a sentence without a final period.
        hint: How to mend it, if that is known.
        rank: Global rank that is the cause, if there is one.
        exit_code: Its exit code; of a signal its negative number.
        log: Its last lines, if they say more than `message`.
        repeats: Whether the same would happen again, since a resumed training repeats itself exactly.
    """

    kind: Kind
    reason: str
    message: str
    hint: str | None = None
    rank: int | None = None
    exit_code: int | None = None
    log: tuple[str, ...] = ()
    repeats: bool = False


def judge(evidence: Evidence, *, first: bool = False) -> Verdict:
    """Return what the attempt came to; `first` says that no attempt failed before it."""
    if evidence.launcher == "finished":
        return Verdict(Kind.TRAINED, "Finished", "training finished", exit_code=0)
    if evidence.stop_requested:
        return _stopped(evidence)
    classes = {end.rank: classify(end) for end in evidence.ends}
    mistakes = [end for end in evidence.ends if classes[end.rank] is Class.MISTAKE]
    if mistakes:
        return _mistake(mistakes)
    acting = [end for end in evidence.ends if classes[end.rank] is not Class.ENDED]
    if acting and all(end.exit_code == exitcodes.STOPPED for end in acting):
        return _stopped(evidence)
    if not evidence.ends:
        return _launcher_failed(evidence)
    if first and _fails_at_its_start(evidence):
        return _broken_script(evidence)
    return _failed(evidence, classes)


def classify(end: RankEnd) -> Class:
    """Return the class of one rank that did not leave with 0."""
    if end.exit_code == exitcodes.MISTAKE:
        return Class.MISTAKE
    text = cause_text(end)
    # Who raised an error may still have been on its way out when torchrun closed it after another one.
    if end.closed and not (TRACEBACK in text or end.error or end.exception):
        return Class.ENDED
    # Text before signal: a watchdog ends its process by SIGABRT. From outside come SIGKILL and SIGTERM only.
    if end.closed or end.exit_code > 0 or end.exit_code == -signal.SIGABRT:
        if any(pattern in text for pattern in WAITED):
            return Class.WAITED
        if any(pattern in text for pattern in CUT_OFF):
            return Class.CUT_OFF
    return Class.OWN


def _stopped(evidence: Evidence) -> Verdict:
    saved = ""
    if evidence.stopped.get("checkpoint"):  # without one, the trainer stopped but did not save
        saved = f", the state of step {evidence.stopped.get('step')} is saved"
    return Verdict(Kind.STOPPED, "Stopped", f"stopped as asked{saved}", exit_code=exitcodes.STOPPED)


def _mistake(mistakes: list[RankEnd]) -> Verdict:
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
        exit_code=end.exit_code,
        log=() if end.error else end.log,
    )


def _fails_at_its_start(evidence: Evidence) -> bool:
    """Return whether a script of the user's fails on all ranks before it did anything, as it would again."""
    if evidence.step or evidence.seconds > _START_SECONDS or len(evidence.ends) < len(evidence.ranks):
        return False
    return all(
        end.error is None and (own_words(end) or "").partition(":")[0] in _REPEATS_AT_ONCE
        for end in evidence.ends
    )


def _broken_script(evidence: Evidence) -> Verdict:
    end = evidence.ends[0]
    return Verdict(
        Kind.MISTAKE,
        "ScriptMistake",
        f"{own_words(end)}, on {'all ranks' if len(evidence.ranks) > 1 else f'rank {end.rank}'} as the script starts",
        hint="correct the script, or what it needs in the image or the volumes",
        rank=end.rank,
        exit_code=end.exit_code,
        log=end.log,
    )


def _launcher_failed(evidence: Evidence) -> Verdict:
    """Return the verdict on an attempt of which no rank is to blame."""
    code = evidence.launcher_code
    if evidence.launcher == "error":
        if any(text in evidence.launcher_message for text in PORT_TAKEN):
            return Verdict(
                Kind.PORT_TAKEN, "PortTaken", "the port of torchrun was taken just before it started"
            )
        return Verdict(
            Kind.FAILED, "LauncherFailed", f"torchrun failed: {evidence.launcher_message}", exit_code=code
        )
    how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    return Verdict(Kind.FAILED, "LauncherDied", f"torchrun {how}, its workers were ended", exit_code=code)


def _failed(evidence: Evidence, classes: dict[int, Class]) -> Verdict:
    left = [rank for rank in evidence.ranks if rank not in classes]
    lowest = min(classes.values())
    if left and lowest > Class.OWN:
        others = _list_ranks([end.rank for end in evidence.ends if classes[end.rank] is not Class.ENDED])
        message = f"rank {left[0]} left early with exit code 0 while others were training ({others} lost it)"
        return Verdict(Kind.FAILED, "LeftEarly", message, rank=left[0], exit_code=0)
    cause = next(end for end in evidence.ends if classes[end.rank] is lowest)
    message = _describe(cause) + _also(cause, evidence)
    if lowest is not Class.OWN:
        message += "; it lost a peer, and no rank shows an error of its own, so it need not be the cause"
    else:
        victims = [end.rank for end in evidence.ends if classes[end.rank] in (Class.WAITED, Class.CUT_OFF)]
        message += f"; {_list_ranks(victims)} failed only because of that" if victims else ""
    error = cause.error or {}
    return Verdict(
        Kind.FAILED,
        str(error.get("reason") or ("WorkerKilled" if cause.exit_code < 0 else "WorkerFailed")),
        message,
        hint=error.get("hint"),
        rank=cause.rank,
        exit_code=cause.exit_code,
        log=cause.log,
        repeats=bool(error.get("repeats")),
    )


def _describe(end: RankEnd) -> str:
    who = f"rank {end.rank} (pid {end.pid})"
    detail = own_words(end)
    if end.exit_code < 0:
        why = detail if end.closed else _SIGNAL_HINTS.get(-end.exit_code, detail)
        return f"{who} was killed by {_signal_name(-end.exit_code)}" + (f" ({why})" if why else "")
    return f"{who} failed with exit code {end.exit_code}" + (f": {detail}" if detail else "")


def _also(cause: RankEnd, evidence: Evidence) -> str:
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


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _list_ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))
