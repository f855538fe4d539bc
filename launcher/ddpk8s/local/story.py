"""What the agents' own lines tell: who is waited for, which attempt it is, what failed. Pure."""

import re
from dataclasses import dataclass

_WAITING = re.compile(r"waiting for (.+)")
_STARTING = re.compile(r"attempt (\d+): .*\bstarting\b.*")
_ENDED = re.compile(r"attempt \d+ (\w+).*")
_AGAIN = re.compile(r"starting again\b.*?: (restart \d+ of \d+)")


def is_gate(text: str) -> bool:
    """Return whether a line of an agent only tells of the gathering of nodes."""
    return bool(_WAITING.fullmatch(text) or _STARTING.fullmatch(text))


@dataclass
class Story:
    """Where the gang is, as node 0's agent tells it; the newest word counts.

    Attributes:
        phase: What the gang does while no progress comes: waiting, starting, failed, or ended if a node was lost;
            empty once it trains.
        waiting: Who is waited for.
        failed: How the newest attempt ended, with the rank that is the cause.
        restart: Which restart it is: ``restart 1 of 3``.
    """

    phase: str = ""
    waiting: str = ""
    failed: str = ""
    restart: str = ""

    def hear(self, text: str) -> bool:
        """Take in a line of node 0's agent, without its prefix; return whether the story goes on by it."""
        if _WAITING.fullmatch(text):
            self.phase, self.waiting = "waiting", text
        elif _STARTING.fullmatch(text):
            self.phase, self.waiting = "starting", ""
        elif ended := _ENDED.fullmatch(text):
            self.phase, self.failed = ended[1] if ended[1] == "failed" else "ended", text
        elif again := _AGAIN.fullmatch(text):
            self.phase, self.restart = "starting", again[1]
        else:
            return False
        return True

    def trains(self) -> None:
        """Take in that progress came."""
        self.phase, self.waiting = "", ""

    @property
    def line(self) -> str:
        """Everything in a line; empty as long as there is nothing unusual."""
        return "  |  ".join(part for part in (self.waiting, self.restart, self.failed) if part)


class Mistakes:
    """Mistakes that agents told: every node finds those of the job, and once is enough to read them."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._repeating: set[int] = set()

    def is_repeated(self, node: int, text: str) -> bool:
        """Return whether a line of a node's agent is of a mistake that another node's has told already."""
        if text.startswith("error: "):
            repeated = self._first.setdefault(text, node) != node
            (self._repeating.add if repeated else self._repeating.discard)(node)
        elif not text.startswith("  "):  # a hint, or more of the same message
            self._repeating.discard(node)
        return node in self._repeating
