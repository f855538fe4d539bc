"""The same figures for TensorBoard."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddpk8s_trainer.metrics.figures import StepFigures
from ddpk8s_trainer.metrics.timer import Part

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoardWriter:
    """Event files of one attempt; events of steps that a restart gave up are purged from view."""

    def __init__(self, directory: Path, resumed_step: int | None) -> None:
        """Open a new event file in `directory`.

        Args:
            directory: Where event files of all attempts lie.
            resumed_step: Step of the checkpoint that is continued from; None hides all earlier events.
        """
        # Imported here, since it takes a fifth of a second and may be switched off.
        from torch.utils.tensorboard import SummaryWriter

        # A purge step hides what earlier files hold from that step on.
        purge_step = 0 if resumed_step is None else resumed_step + 1
        old = [path.name for path in directory.glob("events.out.tfevents.*")]
        _wait_for_a_later_name(old)
        self._writer: SummaryWriter | None = SummaryWriter(
            str(directory), purge_step=purge_step if old else None, flush_secs=10, max_queue=100
        )

    def step(
        self,
        figures: StepFigures,
        rates: dict[str, float | None],
        peak_memory_bytes: int,
        split: dict[Part, float],
    ) -> None:
        """Write a logged step; times as shares of the time since the step logged before."""
        total = sum(split.values())
        scalars: dict[str, float | None] = {
            "train/loss": figures.loss,
            "train/learning_rate": figures.learning_rate,
            "train/grad_norm": figures.grad_norm,
            "train/epoch": figures.epoch,
            "train/loss_scale": figures.loss_scale,
            "train/skipped_steps": figures.skipped_steps,
            "throughput/samples_per_second": rates["samplesPerSecond"],
            "throughput/tokens_per_second_per_device": rates["tokensPerSecondPerDevice"],
            "throughput/padded_tokens_per_second_per_device": rates["paddedTokensPerSecondPerDevice"],
            "throughput/padding_share": rates["paddingShare"],
            "memory/peak_bytes": peak_memory_bytes,
        }
        if total > 0:
            scalars |= {f"time/{part}_share": seconds / total for part, seconds in split.items()}
        self._write(scalars, figures.step)

    def evaluation(self, step: int, scalars: dict[str, Any]) -> None:
        """Write an evaluation and push everything to the file."""
        self._write({f"evaluation/{name}": value for name, value in scalars.items()}, step)
        self.flush()

    def flush(self) -> None:
        """Push everything to the file."""
        self._guarded(lambda writer: writer.flush())

    def close(self) -> None:
        """Push everything to the file and close it."""
        self._guarded(lambda writer: writer.close())
        self._writer = None

    def _write(self, scalars: dict[str, Any], step: int) -> None:
        def write(writer: "SummaryWriter") -> None:
            for name, value in scalars.items():
                if value is not None:
                    writer.add_scalar(name, value, step)

        self._guarded(write)

    def _guarded(self, action: Callable[["SummaryWriter"], None]) -> None:
        """Do something with the writer; a full disk ends TensorBoard, not the training."""
        if self._writer is None:
            return
        try:
            action(self._writer)
        except OSError as error:
            sys.stderr.write(f"cannot write TensorBoard events: {error}; no more of them in this attempt\n")
            self._writer = None


def _wait_for_a_later_name(old: list[str]) -> None:
    """Let the second of the newest event file pass: TensorBoard reads files in the order of their names.

    Names begin with the time in whole seconds. We wait no longer than two seconds: then the
    clocks of two nodes differ.
    """
    newest = max((int(name.split(".")[3]) for name in old if name.split(".")[3].isdigit()), default=0)
    deadline = time.monotonic() + 2
    while int(time.time()) <= newest and time.monotonic() < deadline:
        time.sleep(0.05)
