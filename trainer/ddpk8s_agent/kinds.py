"""What an attempt can come to."""

from dataclasses import dataclass, field
from enum import IntEnum


class Kind(IntEnum):
    """What an attempt counts as."""

    TRAINED = 0
    STOPPED = 1
    MISTAKE = 2
    FAILED = 3
    PORT_TAKEN = 4
    LOST = 5
    """A node was lost; free."""


@dataclass(frozen=True)
class Verdict:
    """What one attempt came to.

    Attributes:
        kind: What it counts as.
        reason: One CamelCase word.
        message: What happened, in a sentence without a final period.
        hint: How to mend it, if that is known.
        rank: Global rank that is the cause, if there is one.
        node: Node rank that is the cause, if that is known.
        exit_code: Its exit code; of a signal its negative number.
        log: Its last lines, if they say more than `message`.
        repeats: Whether the same would happen again, since a resumed training repeats itself exactly.
        certain: Whether the cause was seen, and not only concluded from what it did to others.
    """

    kind: Kind
    reason: str
    message: str
    hint: str | None = None
    rank: int | None = None
    node: int | None = None
    exit_code: int | None = None
    log: tuple[str, ...] = field(default=())
    repeats: bool = False
    certain: bool = True
