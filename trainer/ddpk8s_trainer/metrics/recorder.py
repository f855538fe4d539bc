"""What the training loop calls. Rank 0 records, all others only show that they are alive."""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from ddpk8s_trainer.beats import Phase, beat
from ddpk8s_trainer.metrics.attempts import measure_lost, read_attempts
from ddpk8s_trainer.metrics.events import EventLog, last_seen
from ddpk8s_trainer.metrics.figures import RunFacts, StepFigures
from ddpk8s_trainer.metrics.memory import peak_memory_bytes
from ddpk8s_trainer.metrics.progress import ProgressLine
from ddpk8s_trainer.metrics.tensorboard import TensorBoardWriter
from ddpk8s_trainer.metrics.timer import NoTimer, Part, StepTimer


class Recorder:
    """The interface, and the recorder of ranks that record nothing."""

    timer: StepTimer

    def __init__(self) -> None:
        self.timer = NoTimer()

    def start(
        self,
        total_steps: int,
        resumed_step: int | None,
        rejected: Sequence[Mapping[str, str]] = (),
        epoch: float = 0.0,
    ) -> None:
        """Begin the attempt: cut what a restart gave up and open the files.

        Args:
            total_steps: Optimizer steps of the whole training.
            resumed_step: Step of the checkpoint that was loaded; None starts from nothing.
            rejected: Checkpoints that could not be used, as `{"path": ..., "reason": ...}`.
            epoch: Passes over the data before `resumed_step`, with fraction.
        """

    def phase(self, phase: Phase) -> None:
        """Say what is being done; may be called before `start`."""
        beat(phase=phase)

    def beat(self) -> None:
        """Show that something still happens in a long phase; cheap, may be called often."""
        beat()

    def step(self, figures: StepFigures) -> None:
        """Record a logged step."""

    def evaluation(
        self, step: int, epoch: float, result: Mapping[str, Any], *, labels: Sequence[str], best: bool
    ) -> None:
        """Record an evaluation.

        Args:
            step: Optimizer step after which it was done.
            epoch: Passes over the data so far, with fraction.
            result: `loss`, `accuracy`, `f1`, `confusion` (rows are true labels), `samples`.
            labels: Names, in the order of rows and columns.
            best: Whether it is the best one so far.
        """

    def checkpoint(self, step: int, seconds: float, size: int, best: bool) -> None:
        """Record a completed checkpoint.

        Args:
            step: The step it holds.
            seconds: Time from its request to its completion.
            size: Bytes on disk.
            best: Whether it holds the best model so far.
        """

    def end(self, reason: str, step: int) -> None:  # noqa: ARG002 - for the recorder of rank 0
        """Record the end of the attempt; only the first call counts.

        Args:
            reason: `finished`, `stopped`, or the reason of an error.
            step: Steps done.
        """
        if reason == "finished":
            self.phase("finished")

    def close(self) -> None:
        """Close all files; closing again does nothing."""


class MainRecorder(Recorder):
    """Rank 0's recorder."""

    def __init__(self, facts: RunFacts) -> None:
        self.facts = facts
        self.timer = StepTimer()
        # The attempt begins here, not when its data are read and its checkpoint is loaded.
        self._began = time.time()
        self._progress = ProgressLine(facts.attempt)
        self._attempts = EventLog(facts.directory / "attempts.jsonl")
        self._metrics: EventLog | None = None
        self._tensorboard: TensorBoardWriter | None = None
        self._ended = False

    @override
    def start(
        self,
        total_steps: int,
        resumed_step: int | None,
        rejected: Sequence[Mapping[str, str]] = (),
        epoch: float = 0.0,
    ) -> None:
        previous = read_attempts(self._attempts.path)
        if previous and resumed_step is None and previous[-1].start.get("runId") != self.facts.run_id:
            self._archive(str(previous[-1].start.get("runId")))
        self._metrics = EventLog(self.facts.directory / "metrics.jsonl")
        cut = self._metrics.cut_after(resumed_step)
        lost = measure_lost(previous, cut, self.facts.run_id, resumed_step, self._began)
        if self.facts.tensorboard:
            self._tensorboard = TensorBoardWriter(self.facts.directory / "tensorboard", resumed_step)
        self._write_start(
            totalSteps=total_steps,
            resumedStep=resumed_step,
            rejected=[dict(item) for item in rejected],
            lostSteps=lost.steps,
            lostSeconds=round(lost.seconds, 3),
            lostSince=lost.since,
            # Where the attempt before was seen last: one that was killed cannot say it itself.
            lastStep=cut.last_step,
            lastTime=cut.last_time,
        )
        self._progress.start(resumed_step or 0, total_steps, epoch)
        self.timer.take()

    @override
    def phase(self, phase: Phase) -> None:
        super().phase(phase)
        self._progress.phase(phase)

    @override
    def beat(self) -> None:
        super().beat()
        self._progress.beat()

    @override
    def step(self, figures: StepFigures) -> None:
        split = self.timer.take()
        pauses = split["evaluation"] + split["checkpoint"]
        training = sum(split.values()) - pauses
        rates = figures.rates(training, self.facts.world_size)
        peak = peak_memory_bytes(self.facts.device_type)
        self._progress.remaining.update(figures.step, training, pauses)
        self._write(
            "step",
            figures.step,
            {
                "epoch": figures.epoch,
                "loss": figures.loss,
                "learningRate": figures.learning_rate,
                "gradNorm": figures.grad_norm,
                **rates,
                "peakMemoryBytes": peak,
                "lossScale": figures.loss_scale,
                "skippedSteps": figures.skipped_steps,
                "samples": figures.samples,
                "tokens": figures.tokens,
                "split": {part: round(seconds, 6) for part, seconds in split.items()},
            },
        )
        if self._tensorboard:
            self._tensorboard.step(figures, rates, peak, split)
        self._progress.step(figures, rates, peak)

    @override
    def evaluation(
        self, step: int, epoch: float, result: Mapping[str, Any], *, labels: Sequence[str], best: bool
    ) -> None:
        self._write("evaluation", step, {"epoch": epoch, **result, "labels": list(labels), "best": best})
        scalars = {name: result[name] for name in ("loss", "accuracy", "f1")}
        if self._tensorboard:
            self._tensorboard.evaluation(step, scalars)
        self._progress.evaluation(step, scalars)

    @override
    def checkpoint(self, step: int, seconds: float, size: int, best: bool) -> None:
        self._write("checkpoint", step, {"seconds": round(seconds, 6), "bytes": size, "best": best})
        if self._tensorboard:
            self._tensorboard.flush()

    @override
    def end(self, reason: str, step: int) -> None:
        if self._ended:
            return
        self._ended = True
        if self._metrics is None:
            # It did not get as far as `start`, so it cannot say what was lost: the next attempt does.
            self._write_start(
                resumedStep=None,
                rejected=[],
                lostSteps=0,
                lostSeconds=0.0,
                lostSince=None,
                **last_seen(self.facts.directory / "metrics.jsonl"),
            )
        split: dict[Part, float] = self.timer.take()
        self._attempts.append(
            {
                "event": "end",
                "attempt": self.facts.attempt,
                "time": time.time(),
                "step": step,
                "reason": reason,
                "split": {part: round(seconds, 6) for part, seconds in split.items()},
            }
        )
        super().end(reason, step)

    @override
    def close(self) -> None:
        self._attempts.close()
        if self._metrics:
            self._metrics.close()
        if self._tensorboard:
            self._tensorboard.close()
            self._tensorboard = None

    def _write(self, event: str, step: int, rest: dict[str, Any]) -> None:
        if self._metrics is None:
            raise RuntimeError("Recorder.start was not called")
        head = {"event": event, "step": step, "attempt": self.facts.attempt, "time": time.time()}
        self._metrics.append(head | rest)

    def _write_start(self, **rest: Any) -> None:
        facts = self.facts
        self._attempts.append(
            {
                "event": "start",
                "attempt": facts.attempt,
                "runId": facts.run_id,
                "time": self._began,
                "worldSize": facts.world_size,
            }
            | rest
        )

    def _archive(self, run_id: str) -> None:
        """Move what an earlier run left to where its checkpoints go, instead of writing over it."""
        # Named as the directory of that run's checkpoints.
        target = self.facts.directory / "archive" / (re.sub(r"[^\w.-]", "_", run_id).lstrip(".") or "unknown")
        for name in ("metrics.jsonl", "tensorboard", "samples", "model", "report.html", "training.json"):
            source = self.facts.directory / name
            if source.exists() and not (target / name).exists():
                target.mkdir(parents=True, exist_ok=True)
                source.rename(target / name)


def open_recorder(facts: RunFacts, rank: int) -> Recorder:
    """Return the recorder of a rank: a real one on rank 0, one that does nothing on all others."""
    return MainRecorder(facts) if rank == 0 else Recorder()
