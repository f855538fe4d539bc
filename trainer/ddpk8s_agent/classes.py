"""How near each rank is to the cause.

The lowest class present is the cause, ties go to who was seen first:

MISTAKE   exit 78
OWN       an error of its own: an exception, an exit code, a signal nobody here sent
LEFT      left with 0 while others were training
WAITED    waited in vain for a peer        } victims: named only if there is nobody else,
CUT_OFF   its peer was gone                } and then as uncertain
ENDED     ended by torchrun or the agent, because another had failed: never the cause.
"""

import signal
from enum import IntEnum

from ddpk8s_agent import exitcodes
from ddpk8s_agent.evidence import RankEnd
from ddpk8s_agent.lastwords import TRACEBACK, cause_text, final_exception
from ddpk8s_agent.patterns import CUT_OFF, WAITED


class Class(IntEnum):
    """How near a rank is to the cause; see the head of this file."""

    MISTAKE = 0
    OWN = 1
    LEFT = 2
    WAITED = 3
    CUT_OFF = 4
    ENDED = 5


def classify(end: RankEnd) -> Class:
    """Return the class of one rank that did not leave with 0."""
    if end.exit_code == exitcodes.MISTAKE:
        return Class.MISTAKE
    text = cause_text(end)
    aborted = end.exit_code == -signal.SIGABRT
    # Who raised an error may still have been on its way out when it was closed after another one. SIGABRT ends no
    # exception: it comes from a watchdog, or from the agent, which wanted a stack.
    # Half a traceback tells nothing: it may just as well be that of a victim which was closed while it wrote it.
    told = final_exception(end.log) or TRACEBACK in (end.traceback or "")
    raised = (told or end.error or end.exception) and not (end.closed and aborted)
    # Text before signal: a watchdog ends its process by SIGABRT, or would have if another one had not been faster.
    # From outside come SIGKILL and SIGTERM only.
    if end.closed or end.exit_code > 0 or aborted:
        if any(pattern in text for pattern in WAITED):
            return Class.WAITED
        if any(pattern in text for pattern in CUT_OFF) and (raised or aborted or not end.closed):
            return Class.CUT_OFF
    return Class.ENDED if end.closed and not raised else Class.OWN
