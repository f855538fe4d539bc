"""What people read of an attempt and of the end, and the termination message."""

from collections.abc import Sequence
from typing import Any

from ddpk8s_agent import termination
from ddpk8s_agent.budget import Decision
from ddpk8s_agent.console import Console
from ddpk8s_agent.evidence import Evidence
from ddpk8s_agent.plan import Mistake, Plan
from ddpk8s_agent.verdict import Kind, Verdict

_NO_DECISION = Decision(restart=False)


class Report:
    """Tells the story of one agent.

    Attributes:
        attempt: Number of the attempt it is about; None before the first.
    """

    def __init__(self, plan: Plan, console: Console) -> None:
        self.attempt: int | None = None
        self._plan = plan
        self._console = console
        self._restarts = 0

    def mistakes(self, mistakes: Sequence[Mistake]) -> None:
        """Report what preflight found, all of it."""
        for mistake in mistakes:
            self._console.mistake(mistake.message, mistake.hint)
        self._write("Mistake", "; ".join(mistake.message for mistake in mistakes), {})

    def restart(self, verdict: Verdict, evidence: Evidence, decision: Decision) -> None:
        """Report a failure after which the gang starts again."""
        if verdict.kind is Kind.PORT_TAKEN:
            again = "trying it again" if self._plan.master_port else "taking another one"
            self._console.say(f"{verdict.message}; {again}")
            return
        self._restarts += 1
        self._failure(verdict, evidence)
        pause = f" in {decision.pause_seconds:.0f} s" if decision.pause_seconds else ""
        self._console.say(f"starting again{pause}: restart {self._restarts} of {self._plan.max_restarts}")

    def end(
        self, verdict: Verdict, evidence: Evidence | None = None, decision: Decision = _NO_DECISION
    ) -> None:
        """Report the end, to people and as termination message."""
        reason, message = verdict.reason, verdict.message
        if verdict.kind is Kind.MISTAKE:
            self._console.mistake(verdict.message, verdict.hint)
            self._lines(verdict)
        elif verdict.kind in (Kind.FAILED, Kind.PORT_TAKEN):
            self._failure(verdict, evidence)
            self._console.say(f"giving up: {self._why(decision)}")
            reason = "NoProgress" if decision.reason == "NoProgress" else reason
            message = f"{message}; {self._why(decision)}"
        elif verdict.kind is Kind.STOPPED:
            self._console.say(message)
        facts: dict[str, Any] = {"rank": verdict.rank, "exitCode": verdict.exit_code}
        if evidence:
            result = evidence.finished or evidence.stopped
            facts |= {"step": result.get("step", evidence.step), "checkpoint": result.get("checkpoint")}
        self._write(reason, message, facts)

    def _failure(self, verdict: Verdict, evidence: Evidence | None) -> None:
        where = f" after step {evidence.step}" if evidence and evidence.step is not None else ""
        self._console.say(f"attempt {self.attempt} failed{where}: {verdict.message}")
        if verdict.hint:
            self._console.say(f"  hint: {verdict.hint}")
        self._lines(verdict)

    def _lines(self, verdict: Verdict) -> None:
        if verdict.log:
            self._console.say(f"last lines of rank {verdict.rank}:")
            for line in verdict.log:
                self._console.say(f"  | {line}")

    def _why(self, decision: Decision) -> str:
        if decision.reason == "repeats":
            return "started again, it would come to the same"
        if decision.reason == "NoProgress":
            return "three attempts in a row came no further"
        if not self._plan.max_restarts:
            return "no restarts are allowed (spec.failurePolicy.maxRestarts: 0)"
        used = f"{self._restarts} of {self._plan.max_restarts}"
        return f"restarts used up: {used} (spec.failurePolicy.maxRestarts)"

    def _write(self, reason: str, message: str, facts: dict[str, Any]) -> None:
        word = {"reason": reason, "message": message, "attempt": self.attempt, "restarts": self._restarts}
        termination.write(self._plan.termination_message_path, word | facts)
