"""From the evidence of all nodes to a record in the ledger, a verdict for people, and what follows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ddpk8s_agent import exitcodes
from ddpk8s_agent.budget import NO_PROGRESS, PORT_TRIES, REPEATS, Decision, decide
from ddpk8s_agent.evidence import Evidence
from ddpk8s_agent.gang.ending import Ending
from ddpk8s_agent.gang.ledger import CHARGED, FREE, STOPPED, TRAINED, Ledger, Record
from ddpk8s_agent.gang.merging import merge
from ddpk8s_agent.gang.roster import GONE, KILLED, SILENT, STUCK
from ddpk8s_agent.verdict import Kind, Verdict, judge

__all__ = ["Decider", "Ending", "Outcome"]

_TWICE = "a node's agent was killed without a word for the second time, with no progress between"
_MEMORY_HINT = (
    "probably out of memory: see the pod's last state (kubectl describe pod), raise spec.resources.memory"
)
_EXITS = {Kind.TRAINED: exitcodes.TRAINED, Kind.MISTAKE: exitcodes.MISTAKE, Kind.FAILED: exitcodes.FAILED}
_LONGEST_MESSAGE = 2000
_LOG_CHARACTERS = 6000


@dataclass(frozen=True)
class Outcome:
    """What follows: the record, the verdict for people, the agents' exit code or None, the pause before a restart.

    `final` says that the job is over for good, and not only for these agents.
    """

    record: Record
    verdict: Mapping[str, Any]
    exit: int | None
    pause: float
    word: Mapping[str, Any]
    final: bool = True


@dataclass(frozen=True)
class Decider:
    """Decides on attempts.

    Attributes:
        max_restarts: Charged attempts after which the gang starts again.
        sees_progress: Whether steps can be seen.
        sees_start: Whether ranks give signs of life from their start.
        nnodes: Number of nodes.
        nproc: Ranks on each.
    """

    max_restarts: int
    sees_progress: bool
    sees_start: bool
    nnodes: int
    nproc: int

    def __call__(self, ledger: Ledger, ending: Ending) -> Outcome:
        """Return the outcome of an attempt that has no record yet."""
        merged = merge(ending, self.nnodes, self.nproc)
        verdict = judge(merged, first=ledger.charged == 0)
        if ending.hung_seconds is not None and (verdict.kind is Kind.LOST or verdict.reason == "Unexplained"):
            message = f"no progress for {ending.hung_seconds:.0f} s, and no rank shows where it stands"
            verdict = Verdict(Kind.FAILED, "Hang", message, node=verdict.node, certain=False)
        elif verdict.kind is Kind.LOST:
            verdict = self._loss(ledger, ending, merged, verdict)
        record = self._record(ledger, verdict, merged, ending)
        decision = self._decision(ledger.decided(ending.attempt, record), ending, merged, verdict)
        if decision.reason == NO_PROGRESS and record.kind == FREE:
            record = replace(record, kind=CHARGED)
        word = _word(verdict, merged, decision)
        return Outcome(
            record,
            word | {"log": _last_lines(verdict.log), "decision": asdict(decision)},
            _exit_code(verdict, decision),
            decision.pause_seconds,
            word,
            final=verdict.kind is not Kind.STOPPED,
        )

    def _loss(self, ledger: Ledger, ending: Ending, merged: Evidence, verdict: Verdict) -> Verdict:
        """A lost node is free; one that is killed again and again without progress is not."""
        best = ledger.best_step()
        if merged.step is not None and (best is None or merged.step > best):
            return verdict
        again = ledger.killed_since_progress(ending.pardoned) & set(_killed(ending))
        if not again:
            return verdict
        return replace(
            verdict,
            kind=Kind.FAILED,
            reason="NodeKilled",
            message=f"{verdict.message}; {_TWICE}",
            node=min(again),
            hint=_MEMORY_HINT,
        )

    def _record(self, ledger: Ledger, verdict: Verdict, merged: Evidence, ending: Ending) -> Record:
        port = verdict.kind is Kind.PORT_TAKEN and ledger.ports_taken() < PORT_TRIES
        kinds = {Kind.TRAINED: TRAINED, Kind.STOPPED: STOPPED, Kind.LOST: FREE}
        return Record(
            kind=FREE if port else kinds.get(verdict.kind, CHARGED),
            why=verdict.message,
            step=merged.step,
            killed=_killed(ending),
            unseen=_unseen(ending),
            port=port,
        )

    def _decision(self, ledger: Ledger, ending: Ending, merged: Evidence, verdict: Verdict) -> Decision:
        if verdict.kind in (Kind.TRAINED, Kind.MISTAKE):
            return Decision(restart=False)
        if verdict.kind is Kind.STOPPED:
            # Those that were asked leave, the others wait for them to come back. If the workers stopped, and
            # surely nobody asked an agent, then all leave.
            return Decision(restart=merged.stop_requested or len(ending.evidence) < self.nnodes)
        if verdict.repeats:
            return Decision(restart=False, reason=REPEATS)
        return decide(ledger, ending.attempt, self.max_restarts, sees_progress=self.sees_progress)


def _killed(ending: Ending) -> tuple[int, ...]:
    return tuple(sorted(node for node, how in ending.lost.items() if how == KILLED))


def _unseen(ending: Ending) -> tuple[int, ...]:
    """Return the nodes of which nobody knows that their processes are gone."""
    return tuple(sorted(node for node, how in ending.lost.items() if how in (SILENT, STUCK, GONE)))


def _exit_code(verdict: Verdict, decision: Decision) -> int | None:
    if decision.restart:
        return None
    if verdict.kind is Kind.STOPPED:
        return exitcodes.STOPPED
    return _EXITS.get(verdict.kind, exitcodes.FAILED)


def _word(verdict: Verdict, merged: Evidence, decision: Decision) -> dict[str, Any]:
    """Return the verdict as the last word has it."""
    result = merged.finished or merged.stopped
    reason = NO_PROGRESS if decision.reason == NO_PROGRESS else verdict.reason
    return {
        "kind": verdict.kind.name.lower(),
        "reason": reason,
        "message": verdict.message[:_LONGEST_MESSAGE],
        "hint": verdict.hint and verdict.hint[:_LONGEST_MESSAGE],
        "rank": verdict.rank,
        "node": verdict.node,
        "exitCode": verdict.exit_code,
        "step": result.get("step", merged.step),
        "checkpoint": result.get("checkpoint"),
        "certain": verdict.certain,
    }


def _last_lines(log: tuple[str, ...]) -> list[str]:
    """Return the newest lines that still fit into a verdict."""
    kept: list[str] = []
    room = _LOG_CHARACTERS
    for line in reversed(log):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]
