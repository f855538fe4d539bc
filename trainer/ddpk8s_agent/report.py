"""What people read of an attempt and of the end, and the termination message."""

from collections.abc import Mapping, Sequence
from typing import Any

from ddpk8s_agent import exitcodes, termination
from ddpk8s_agent.budget import NO_PROGRESS, REPEATS
from ddpk8s_agent.console import Console
from ddpk8s_agent.gang import events as e
from ddpk8s_agent.gang.ledger import Ledger
from ddpk8s_agent.plan import Mistake, Plan

_MOST_ATTEMPTS, _LONGEST_WHY = 20, 160
_WORD = ("reason", "message", "rank", "node", "exitCode", "step", "checkpoint")


class Report:
    """Tells the story of one agent. Node 0 tells it whole, the others only what concerns them.

    Attributes:
        attempt: Number of the attempt it is about; None before the first.
    """

    def __init__(self, plan: Plan, console: Console) -> None:
        self.attempt: int | None = None
        self._plan = plan
        self._console = console
        self._restarts = 0
        self._word: Mapping[str, Any] = {}

    def mistakes(self, mistakes: Sequence[Mistake]) -> None:
        """Report what preflight found, all of it."""
        for mistake in mistakes:
            self._console.mistake(mistake.message, mistake.hint)
        self._write({"reason": "Mistake", "message": "; ".join(mistake.message for mistake in mistakes)})

    def unhealthy(self, error: Exception) -> None:
        """Report a process that cannot be killed."""
        self._console.say(str(error))
        self._write({"reason": "NodeUnhealthy", "message": str(error)})

    def started(self, attempt: int) -> None:
        """Report the start of an attempt."""
        self.attempt = attempt
        if self._plan.nnodes > 1 and self._plan.node_rank == 0:
            self._console.say(f"attempt {attempt}: all {self._plan.nnodes} nodes are here, starting")

    def told(self, told: e.Told, ledger: Ledger) -> None:
        """Report the verdict on an attempt; `ledger` has those before it, too."""
        verdict = told.verdict
        self.attempt = told.attempt
        failed = told.exit in (exitcodes.FAILED, exitcodes.MISTAKE)
        self._restarts = max(0, told.restarts - 1) if failed else told.restarts
        self._word = {**verdict, "message": verdict.get("message", "")}
        kind = verdict.get("kind")
        if self._plan.node_rank > 0:
            return
        if kind == "mistake":
            self._console.mistake(str(verdict["message"]), verdict.get("hint"))
            self._lines(verdict)
        elif kind == "port_taken" and told.exit is None:
            again = "trying it again" if self._plan.master_port else "taking another one"
            self._console.say(f"{verdict['message']}; {again}")
        elif kind in ("failed", "port_taken", "lost"):
            self._failure(told, ledger)
        elif kind == "stopped":
            self._console.say(str(verdict["message"]))
        elif kind == "trained" and ";" in str(verdict["message"]):
            self._console.say(f"warning: {verdict['message']}")

    def leave(self, order: e.Exit) -> None:
        """Write the last word."""
        if order.word:
            if order.code in (exitcodes.FAILED, exitcodes.MISTAKE, exitcodes.BUG):
                self._console.mistake(str(order.word.get("message")), order.word.get("hint"))
            elif order.code == exitcodes.STOPPED:
                self._console.say(str(order.word.get("message")))
            self._word = order.word
        self._write(self._word)

    def _failure(self, told: e.Told, ledger: Ledger) -> None:
        verdict, decision = told.verdict, told.verdict.get("decision") or {}
        charged = verdict["kind"] != "lost"
        where = f" after step {verdict['step']}" if verdict.get("step") is not None else ""
        ended = "failed" if charged else "was lost"
        self._console.say(f"attempt {told.attempt} {ended}{where}: {verdict['message']}")
        if verdict.get("hint"):
            self._console.say(f"  hint: {verdict['hint']}")
        self._lines(verdict)
        if told.exit is not None:
            why = self._why(str(decision.get("reason", "")))
            self._console.say(f"giving up: {why}")
            self._attempts(ledger)
            self._word = {**self._word, "message": f"{verdict['message']}; {why}"}
            return
        pause = f" in {told.pause:.0f} s" if told.pause else ""
        if not charged:
            self._console.say(f"starting again{pause} when all nodes are here: a lost node is not charged")
            return
        self._console.say(f"starting again{pause}: restart {told.restarts} of {self._plan.max_restarts}")

    def _lines(self, verdict: Mapping[str, Any]) -> None:
        if verdict.get("log"):
            self._console.say(f"last lines of rank {verdict.get('rank')}:")
            for line in verdict["log"]:
                self._console.say(f"  | {line}")

    def _attempts(self, ledger: Ledger) -> None:
        """Tell what each attempt of this launch came to, if there were several."""
        numbers = sorted(ledger.records)
        if len(numbers) < 2:
            return
        if len(numbers) > _MOST_ATTEMPTS:
            self._console.say(f"  the newest {_MOST_ATTEMPTS} of {len(numbers)} attempts:")
        for number in numbers[-_MOST_ATTEMPTS:]:
            record = ledger.records[number]
            step = f"step {record.step}: " if record.step is not None else ""
            why = record.why if len(record.why) <= _LONGEST_WHY else f"{record.why[:_LONGEST_WHY]} ..."
            self._console.say(f"  attempt {number}  {record.kind:<7}  {step}{why}")

    def _why(self, reason: str) -> str:
        if reason == REPEATS:
            return "started again, it would come to the same"
        if reason == NO_PROGRESS:
            return "three attempts in a row came no further"
        if not self._plan.max_restarts:
            return "no restarts are allowed (spec.failurePolicy.maxRestarts: 0)"
        used = f"{self._restarts} of {self._plan.max_restarts}"
        return f"restarts used up: {used} (spec.failurePolicy.maxRestarts)"

    def _write(self, content: Mapping[str, Any]) -> None:
        word: dict[str, Any] = {
            "reason": "",
            "message": "",
            "attempt": self.attempt,
            "restarts": self._restarts,
        }
        facts = {name: content.get(name) for name in _WORD}
        termination.write(self._plan.termination_message_path, word | facts)
