"""The agents of all nodes: started together, read together, replaced as Kubernetes replaces pods."""

import selectors
import signal
import time
from collections.abc import Callable, Iterator, Sequence

from ddpk8s.local.agent import STOPPED, AgentProcess, Line, Start
from ddpk8s.local.stopper import Stopper, send

_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 15.0
"""Agents end together; what is left when one has failed so long ago waits for it in vain."""


class Agents:
    """The agents of a run, from their start to the end of the last one.

    An agent that was killed is started again, and joins the gang by itself. One that fails ends the job, as
    the Job's failure policy does in a cluster: the others are asked to stop if they do not end by themselves.
    A single agent is not replaced: nobody waits for it, and the next run continues.
    """

    def __init__(
        self,
        starts: Sequence[Start],
        stopper: Stopper,
        tell: Callable[[str], None],
        *,
        replacements: int,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        """Start nothing yet.

        Args:
            starts: How each node's agent is started, by node rank.
            stopper: Whether the user asked to stop; it learns of every agent.
            tell: Tells the user something.
            replacements: How often each node's agent is started again.
            patience_seconds: Time that agents have to end after one that failed.
        """
        self._starts = starts
        self._stopper = stopper
        self._tell = tell
        self._spare = [replacements if len(starts) > 1 else 0] * len(starts)
        self._patience = patience_seconds
        self._running: dict[int, AgentProcess] = {}
        self._codes: dict[int, int] = {}  # by node, in the order of their ends
        self._failed_since: float | None = None
        self._ended_rest = False
        self._selector = selectors.DefaultSelector()

    def lines(self) -> Iterator[Line | None]:
        """Start them and yield their output until the last one ends; None where nothing came for a while."""
        with self._selector:
            for node in range(len(self._starts)):
                self._start(node)
            while self._running:
                ready = self._selector.select(_POLL_SECONDS)
                if not ready:
                    yield None
                for key, _events in ready:
                    node, pipe = key.data
                    yield from (Line(node, pipe.stream, text) for text in pipe.read())
                    if not pipe.open:
                        self._selector.unregister(pipe)
                        pipe.close()
                self._see_ends()
                self._end_rest()

    def result(self) -> tuple[int, int]:
        """Return which node's agent speaks for the run, and its exit code, 128 + the signal if it was killed.

        Node 0's, unless it was killed, or only stopped by us because another one had failed.
        """
        node, code = 0, self._codes[0]
        if self._ended_rest and (code < 0 or code == STOPPED):
            node, code = self._first_failure()
        elif code < 0:
            node, code = next((end for end in self._codes.items() if end[1] >= 0), (node, code))
        return node, code if code >= 0 else 128 - code

    def _start(self, node: int) -> None:
        agent = self._running[node] = AgentProcess(self._starts[node])
        for pipe in agent.pipes:
            self._selector.register(pipe, selectors.EVENT_READ, (node, pipe))
        self._stopper.watch(agent.pid)

    def _see_ends(self) -> None:
        for node, agent in list(self._running.items()):
            code = agent.exit_code()
            if code is None:
                continue
            self._stopper.forget(agent.pid)
            del self._running[node]
            if self._is_replaced(node, code):
                self._spare[node] -= 1
                how = f"node {node}'s agent {_ended(code)}"
                self._tell(f"{how}; starting it again, as Kubernetes would replace the pod")
                self._start(node)
            else:
                self._codes[node] = code

    def _is_replaced(self, node: int, code: int) -> bool:
        """Return whether an agent that ended is started again: killed, not by us, and the gang lives on."""
        return code < 0 and not self._stopper.asked and not self._codes and self._spare[node] > 0

    def _end_rest(self) -> None:
        """Ask agents to stop that are left of a gang of which one has failed."""
        asked = self._ended_rest or self._stopper.asked
        if asked or not self._running or not any(self._codes.values()):
            return
        now = time.monotonic()
        self._failed_since = now if self._failed_since is None else self._failed_since
        if now - self._failed_since < self._patience:
            return
        self._ended_rest = True
        node, code = self._first_failure()
        self._tell(f"node {node}'s agent {_ended(code)}; stopping the others, as Kubernetes ends the job")
        for agent in self._running.values():
            send(agent.pid, signal.SIGTERM)

    def _first_failure(self) -> tuple[int, int]:
        return next((node, code) for node, code in self._codes.items() if code)


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name
        return f"was killed by signal {-code}"
