"""One training run: everything the loop works with, and what it may ask of it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from ddpk8s.spec.training import Schedule, Training
from ddpk8s_trainer.callbacks import Callback
from ddpk8s_trainer.checkpoint import CheckpointManager, Saved
from ddpk8s_trainer.clock import SaveClock
from ddpk8s_trainer.config import TrainerConfig
from ddpk8s_trainer.data.cache import TokenDataset
from ddpk8s_trainer.data.collate import collate
from ddpk8s_trainer.data.plan import Plan
from ddpk8s_trainer.distributed import Gang
from ddpk8s_trainer.errors import TrainingFailed
from ddpk8s_trainer.metrics import Recorder, StepFigures, StepTimer
from ddpk8s_trainer.samplelog import SampleLog
from ddpk8s_trainer.seeding import random_state
from ddpk8s_trainer.signals import StopRequest
from ddpk8s_trainer.state import TrainState
from ddpk8s_trainer.strategy import DDPStrategy
from ddpk8s_trainer.totals import Totals
from ddpk8s_trainer.window import Window

Ids = npt.NDArray[np.int64]


def say(gang: Gang, message: str) -> None:
    """Print one line for people on stderr, in rank 0 only."""
    if gang.is_main:
        print(message, file=sys.stderr, flush=True)  # noqa: T201 - the trainer's own voice


@dataclass
class Run:
    """What a run consists of; built by `setup.build_run`."""

    config: TrainerConfig
    gang: Gang
    stop: StopRequest
    strategy: DDPStrategy
    plan: Plan
    train_data: TokenDataset
    validation_data: TokenDataset | None
    validation_batches: list[Ids]
    labels: list[str]
    pad_token_id: int
    total_steps: int
    checkpoints: CheckpointManager
    recorder: Recorder
    timer: StepTimer
    sample_log: SampleLog
    save_clock: SaveClock
    state: TrainState
    callbacks: Sequence[Callback] = ()
    window: Window = field(default_factory=Window)

    @property
    def training(self) -> Training:
        """The `training` section."""
        return self.config.training

    @property
    def schedule(self) -> Schedule:
        """The learning rate's course."""
        return self.training.schedule

    @property
    def learning_rate(self) -> float:
        """The peak learning rate."""
        return self.training.optimizer.learning_rate

    def say(self, message: str) -> None:
        """Print one line for people on stderr, in rank 0 only."""
        say(self.gang, message)

    def epoch(self) -> float:
        """Return the passes over the data so far, with fraction."""
        return self.state.step / self.plan.steps_per_epoch

    def count_tokens(self, ids: Ids) -> int:
        """Return the number of tokens of samples, without padding."""
        return int(self.train_data.lengths[ids].sum())

    def collate(self, ids: Ids) -> dict[str, torch.Tensor]:
        """Return training samples as a batch on this rank's device."""
        full = self.training.data.max_length if self.training.batch.pad_to == "maxLength" else None
        return collate(self.train_data, ids, self.pad_token_id, full, self.gang.device)

    def collate_validation(self, ids: Ids) -> dict[str, torch.Tensor]:
        """Return validation samples as a batch on this rank's device."""
        assert self.validation_data is not None
        return collate(self.validation_data, ids, self.pad_token_id, None, self.gang.device)

    def predict(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return logits, float32 [batch, labels], without the wrapper: ranks need no equal number of batches."""
        with self.strategy.autocast():
            logits: torch.Tensor = self.strategy.module(**inputs).logits
        return logits.float()

    def log_step(self, totals: Totals, learning_rate: float, grad_norm: float) -> None:
        """Count the step just done; write a line of metrics where one is due. Steps that went wrong always get one."""
        step = self.state.step
        self.window.add(totals.samples, totals.tokens, totals.padded_tokens, totals.loss)
        due = step % self.training.metrics.log_every_steps == 0 or step in (1, self.total_steps)
        if not (due or totals.bad_ranks or totals.stop_ranks):
            return
        window, self.window = self.window, Window()
        self.recorder.step(
            StepFigures(
                step=step,
                epoch=self.epoch(),
                loss=window.loss,
                learning_rate=learning_rate,
                grad_norm=grad_norm,
                samples=window.samples,
                tokens=window.tokens,
                padded_tokens=window.padded_tokens,
                loss_scale=self.strategy.loss_scale,
                skipped_steps=self.state.skipped_steps,
            )
        )

    def evaluates_at(self, step: int) -> bool:
        """Whether an evaluation follows `step`: each so many steps, else each epoch; always the last."""
        if self.validation_data is None:
            return False
        every = self.training.evaluation.every_steps or self.plan.steps_per_epoch
        return step % every == 0 or step == self.total_steps

    def saves_at(self, step: int) -> bool:
        """Whether a checkpoint follows `step` by count (the clock is agreed on by all ranks elsewhere)."""
        every = self.training.checkpoint.every_steps
        return every is not None and step % every == 0

    def save(self, *, best: bool = False, wait: bool = False) -> None:
        """Save the state after the current step. Collective; with `wait` it is on disk when this returns.

        Raises:
            TrainingFailed: with `wait`, the state could not be saved.
        """
        if wait:
            self.recorder.phase("saving")
        self.timer.lap("other")
        self.state.saved_step = self.state.step
        state = {**self.strategy.tensors(), "per_rank": {"random": random_state(self.gang.device)}}
        self.checkpoints.save(self.state.step, state, self._metadata(), best=best, wait=wait)
        self.save_clock.reset()
        if wait:
            self.collect_saves(must_succeed=True)
        self.timer.lap("checkpoint")

    def collect_saves(self, *, must_succeed: bool = False) -> None:
        """Log the saves that ended since the last call; a failed one is said, and training goes on.

        Raises:
            TrainingFailed: one failed and `must_succeed` is set.
        """
        for saved in self.checkpoints.finish() if must_succeed else self.checkpoints.poll():
            self._note(saved, must_succeed=must_succeed)

    def _note(self, saved: Saved, *, must_succeed: bool) -> None:
        if saved.error is None:
            self.recorder.checkpoint(saved.step, saved.seconds, saved.bytes, best=saved.best)
            return
        problem = f"the checkpoint of step {saved.step} could not be saved: {saved.error}"
        if must_succeed and saved.step == self.state.step:
            raise TrainingFailed(
                problem, "the checkpoint before it is intact; make room, then run again", step=saved.step
            )
        self.say(f"{problem}; training goes on, the checkpoint before it is intact")

    def _metadata(self) -> dict[str, object]:
        return {
            "state": self.state.as_json(),
            "strategy": self.strategy.scalars(),
            "plan": self.plan.fingerprint,
            "totalSteps": self.total_steps,
            "worldSize": self.gang.world_size,
            "labels": self.labels,
            "training": self.training.to_document(),
        }
