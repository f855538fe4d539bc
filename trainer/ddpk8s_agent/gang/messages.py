"""What agents send each other: JSON objects, one a line, at most 64 KiB.

member to coordinator
    HELLO     token, nnodes, nproc, spec (hash), state, fresh: whether no coordinator ever let it in, ledger,
              evidence, of, ok, step (of an attempt without a verdict), prepared: newest attempt it may have started,
              left: attempt whose coordinator left, as it was asked to, before its end,
              silent: [inc of a coordinator that it lost without an end of the connection, seconds since]
    HB        state, ranks: [[rank, step, seconds since its last sign, started], ...]
    READY     rdzv
    NOTREADY  rdzv, why, mistake: whether it ends the job, hint
    SUSPECT   hint: something ended here
    DONE      ok, evidence
    STOPPING  somebody asked this agent to stop
    LEAVE     it exits, no process is left
    CUT       it hears nothing, ends its processes, and closes this connection
    ACK       of: the verdict on this attempt is taken

coordinator to member
    WELCOME   ledger
    WAITING   duplicate: the node rank is taken, ledger
    REJECT    why, fatal: whether asking again is in vain
    PREPARE   rdzv, port, mark: what all nodes must see in the checkpoint directory
    START     rdzv, port, ledger
    HB        phase, rdzv, owed: whether a verdict for this member is still to come, step: the newest anywhere
    LEAVE     the coordinator exits, because somebody asked it to stop
    CUT       the coordinator hears nothing, or nothing that fits, and closes this connection
    END       why, grace: seconds between SIGTERM and SIGKILL
    VERDICT   record, verdict (for people), ledger, exit: the code to leave with, or None, pause
    EXIT      code, word

All carry v, attempt, node, inc. `rdzv` names one start of one attempt, so that nothing said of an
earlier one is taken for this one.
"""

import json
from typing import Any

VERSION = 1
LONGEST = 64 * 1024
Message = dict[str, Any]


class BadLineError(ValueError):
    """A line that is no message."""


def encode(message: Message) -> bytes:
    """Return the line of a message.

    Raises:
        ValueError: It is longer than a line may be.
    """
    line = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
    if len(line) > LONGEST:
        raise ValueError(f"a {message.get('type')} of {len(line)} bytes")
    return line


def decode(line: bytes) -> Message:
    """Return the message in a line.

    Raises:
        BadLineError: It is none.
    """
    try:
        message = json.loads(line)
        if b"\\ud" in line.lower():  # half a character, which could not be printed or sent on
            json.dumps(message, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadLineError("no JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise BadLineError("no message")
    if message.get("v") != VERSION:
        raise BadLineError(f"version {message.get('v')!r} of the protocol, this is {VERSION}")
    if not isinstance(message.get("node"), int) or not isinstance(message.get("attempt"), int):
        raise BadLineError("node and attempt are no numbers")
    return message
