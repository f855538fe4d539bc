"""What the coordinator gathers on the end of one attempt, as it comes in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ddpk8s_agent.gang.roster import CUT, LEFT


@dataclass
class Ending:
    """What is known of the end of one attempt.

    Attributes:
        attempt: Its number.
        resumed: Whether an earlier coordinator began it.
        evidence: What each node says, in the order of arrival.
        order: Nodes in the order in which they said that something ended.
        lost: Nodes that were lost, and how; those with evidence came back.
        stopping: Nodes that somebody asked to stop.
        failed_first: Whether something had ended, or hung, before anybody was asked to stop.
        hung_seconds: How long nothing moved, if that ended it.
        unfinished: Whether it was ended because somebody did not leave after others had.
        step: Newest step that anybody heard of while it ran; who made it may be lost.
        pardoned: Earlier attempts, and node ranks that did not die in them after all.
    """

    attempt: int
    resumed: bool = False
    evidence: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    lost: dict[int, str] = field(default_factory=dict)
    stopping: set[int] = field(default_factory=set)
    failed_first: bool = False
    hung_seconds: float | None = None
    unfinished: bool = False
    step: int | None = None
    pardoned: set[tuple[int, int]] = field(default_factory=set)

    def add(self, node: int, ok: bool, evidence: Mapping[str, Any]) -> None:
        """Take in what a node says; the first time counts."""
        if node in self.evidence:
            return
        self.evidence[node] = evidence
        self.returned(node)
        if not ok:
            self.suspected(node)

    def suspected(self, node: int) -> None:
        """Something ended on a node."""
        # A coordinator that only hears of the end afterwards cannot know which came first.
        if not self.order and not self.stopping and not self.lost and not self.resumed:
            self.failed_first = True
        if node not in self.order:
            self.order.append(node)

    def hung(self, seconds: float) -> None:
        """Nothing moves anywhere."""
        self.hung_seconds = seconds
        self.failed_first = self.failed_first or not self.stopping

    def miss(self, node: int, how: str) -> bool:
        """A node is lost; return whether that changes anything: its evidence may be here already."""
        if node in self.evidence:
            return False
        if how == LEFT:
            self.stopped(node)
        self.lost.setdefault(node, how)
        return True

    def returned(self, node: int) -> None:
        """A node came back: whatever its loss looked like, its agent lives."""
        if node in self.lost:
            self.lost[node] = CUT

    def see(self, step: object) -> None:
        """Somebody heard of a step."""
        if isinstance(step, int) and (self.step is None or step > self.step):
            self.step = step

    def stopped(self, node: int) -> None:
        """Somebody asked a node to stop."""
        self.stopping.add(node)
