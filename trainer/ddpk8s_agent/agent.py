"""The agent, top to bottom: preflight, then what the gang decides, then the last word."""

import os
import time
from dataclasses import dataclass
from signal import SIGKILL

from ddpk8s_agent import exitcodes, wireform
from ddpk8s_agent.arming import problem_of_start
from ddpk8s_agent.attempt import Attempt, UnkillableError
from ddpk8s_agent.beats import Beat
from ddpk8s_agent.console import Console
from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.network import Network
from ddpk8s_agent.gang.store import Store
from ddpk8s_agent.machines import join, ledger_paths, timing_of
from ddpk8s_agent.plan import Mistake, Plan
from ddpk8s_agent.preflight import find_mistakes
from ddpk8s_agent.processes import send, strays
from ddpk8s_agent.report import Report
from ddpk8s_agent.shared import HINT, keep_mark, problem_of_sharing, remove_mark
from ddpk8s_agent.signals import StopRequest

_STRAYS_SECONDS = 30.0
_IDLE_SECONDS = 0.1


class GangLink:
    """What an attempt has to do with the other nodes, by way of the network thread."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._said_stopping = False
        self.later: list[e.Action] = []

    def drain(self) -> tuple[str, float] | None:
        """Return why the attempt is to end here, and the seconds between SIGTERM and SIGKILL; or None."""
        while (order := self._network.next(0)) is not None:
            if isinstance(order, e.Drain):
                return order.why, order.grace
            if not isinstance(order, e.Stop):
                self.later.append(order)
        return None

    def suspect(self, hint: str) -> None:
        """Say that something ended here."""
        self._network.post(e.Suspected(hint))

    def beat(self, ranks: tuple[Beat, ...]) -> None:
        """Say how far the ranks are."""
        self._network.post(e.Beats(ranks))

    def stopping(self) -> None:
        """Say that somebody asked this agent to stop."""
        if not self._said_stopping:
            self._said_stopping = True
            self._network.post(e.StopAsked())


@dataclass
class Agent:
    """Runs one job on one node."""

    plan: Plan
    stop: StopRequest
    console: Console
    keep_fds: tuple[int, ...] = ()
    _seen: str = ""
    """The mark of node 0 that was seen here."""

    def run(self) -> int:
        """Run the job to its end; return the exit code of the agent."""
        report = Report(self.plan, self.console)
        mistakes = find_mistakes(self.plan)
        if mistakes and not self.stop.requested:
            report.mistakes(mistakes)
            return exitcodes.MISTAKE
        try:
            end_strays(self.plan, self.console)
        except UnkillableError as error:
            report.unhealthy(error)
            return exitcodes.STOPPED
        store = Store(*ledger_paths(self.plan), self.console.say)
        try:
            network = join(self.plan, store, self.console, self.stop)
        except Mistake as mistake:
            report.mistakes([mistake])
            return exitcodes.MISTAKE
        try:
            return self._follow(network, report)
        except UnkillableError as error:
            # What ended the attempt is told all the same; what is left here is nobody's failure.
            if error.evidence is not None:
                network.post(e.Ended(ok=False, evidence=wireform.to_document(error.evidence)))
            network.post(e.StopAsked())
            report.unhealthy(error)
            return exitcodes.STOPPED
        finally:
            network.close()
            store.close(2.0)
            remove_mark(self.plan, network.coordinator.mark if network.coordinator else "")

    def _follow(self, network: Network, report: Report) -> int:
        """Do what the gang decides, until it says to leave.

        Raises:
            UnkillableError: a process survived SIGKILL.
        """
        gang = GangLink(network)
        while True:
            if self.stop.requested:
                gang.stopping()
            order = gang.later.pop(0) if gang.later else network.next(_IDLE_SECONDS)
            if isinstance(order, e.Arm):
                network.post(self._arm(order))
            elif isinstance(order, e.Start):
                network.post(self._attempt(order, gang, report))
            elif isinstance(order, e.Told):
                report.told(order, network.member.ledger)
            elif isinstance(order, e.Exit):
                report.leave(order)
                return order.code

    def _arm(self, order: e.Arm) -> e.Armed:
        problem = problem_of_start(self.plan, order.port, self.stop)
        if self.plan.node_rank == 0:
            keep_mark(self.plan, order.mark)
        if problem or order.mark == self._seen:
            return e.Armed(order.rdzv, problem)
        seconds = timing_of(self.plan).visible
        problem = problem_of_sharing(self.plan, order.mark, seconds, lambda: self.stop.requested)
        if problem:
            return e.Armed(order.rdzv, problem, mistake=True, hint=HINT)
        self._seen = order.mark
        return e.Armed(order.rdzv)

    def _attempt(self, order: e.Start, gang: GangLink, report: Report) -> e.Ended:
        report.started(order.attempt)
        port = self.plan.master_port or order.port
        evidence = Attempt(
            self.plan, order.attempt, order.rdzv, port, gang, self.stop, self.console, self.keep_fds
        ).run()
        return e.Ended(evidence.launcher == "finished", wireform.to_document(evidence))


def end_strays(plan: Plan, console: Console) -> None:
    """Kill what an agent left behind that was itself killed; it would write the same checkpoints.

    Raises:
        UnkillableError: a process survived SIGKILL.
    """
    marker = f"DDPK8S_STATUS_DIR={plan.state_directory}{os.sep}"
    left = strays(marker)
    if left:
        console.say(f"killing processes that an earlier, killed agent left behind: {_list(left)}")
    end = time.monotonic() + _STRAYS_SECONDS
    while left:
        if time.monotonic() > end:
            raise UnkillableError(left)
        send(left, SIGKILL)
        time.sleep(0.05)
        left = strays(marker)


def _list(pids: list[int]) -> str:
    return ", ".join(map(str, pids))
