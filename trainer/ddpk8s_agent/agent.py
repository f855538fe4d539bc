"""The agent, top to bottom: preflight, then attempts until one counts, then the last word."""

import os
import time
from dataclasses import dataclass, field
from signal import SIGKILL

from ddpk8s_agent import exitcodes
from ddpk8s_agent.attempt import Attempt, UnkillableError, next_attempt
from ddpk8s_agent.budget import Budget, Decision
from ddpk8s_agent.console import Console
from ddpk8s_agent.evidence import Evidence
from ddpk8s_agent.plan import Plan
from ddpk8s_agent.preflight import find_mistakes
from ddpk8s_agent.processes import send, strays
from ddpk8s_agent.report import Report
from ddpk8s_agent.signals import StopRequest
from ddpk8s_agent.verdict import Kind, Verdict, judge

_PORT_TRIES = 5
_STRAYS_SECONDS = 30.0
_EXIT_CODES = {
    Kind.TRAINED: exitcodes.TRAINED,
    Kind.STOPPED: exitcodes.STOPPED,
    Kind.MISTAKE: exitcodes.MISTAKE,
    Kind.FAILED: exitcodes.FAILED,
    Kind.PORT_TAKEN: exitcodes.FAILED,
}
_NOTHING_RAN = Verdict(Kind.STOPPED, "Stopped", "stopped as asked, nothing was running")


@dataclass
class Agent:
    """Runs one job on one node."""

    plan: Plan
    stop: StopRequest
    console: Console
    keep_fds: tuple[int, ...] = ()
    _port_tries: int = field(default=0, init=False)

    def run(self) -> int:
        """Run the job to its end; return the exit code of the agent."""
        report = Report(self.plan, self.console)
        mistakes = find_mistakes(self.plan)
        if mistakes and not self.stop.requested:
            report.mistakes(mistakes)
            return exitcodes.MISTAKE
        try:
            end_strays(self.plan, self.console)
            verdict = self._run_attempts(report)
        except UnkillableError as error:
            verdict = Verdict(Kind.STOPPED, "NodeUnhealthy", str(error))
            report.end(verdict)
        return _EXIT_CODES[verdict.kind]

    def _run_attempts(self, report: Report) -> Verdict:
        """Start the gang until an attempt counts; return the verdict on the last one, reported.

        Raises:
            UnkillableError: a process survived SIGKILL.
        """
        budget = Budget(self.plan.max_restarts, sees_progress=self.plan.reports_progress)
        number = next_attempt(self.plan.state_directory)
        pause = 0.0
        while not self.stop.wait(pause):
            evidence = Attempt(self.plan, number, self.stop, self.console, self.keep_fds).run()
            report.attempt = number
            verdict = judge(evidence, first=not budget.charged)
            decision = self._decide(verdict, evidence, budget)
            if not decision.restart:
                report.end(verdict, evidence, decision)
                return verdict
            report.restart(verdict, evidence, decision)
            pause = decision.pause_seconds
            number += 1
        report.end(_NOTHING_RAN)
        return _NOTHING_RAN

    def _decide(self, verdict: Verdict, evidence: Evidence, budget: Budget) -> Decision:
        if verdict.kind is Kind.PORT_TAKEN and self._port_tries < _PORT_TRIES:
            self._port_tries += 1
            return Decision(restart=True)
        if verdict.repeats:
            return Decision(restart=False, reason="repeats")
        if verdict.kind in (Kind.FAILED, Kind.PORT_TAKEN):
            return budget.charge(evidence.step)
        return Decision(restart=False)


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
