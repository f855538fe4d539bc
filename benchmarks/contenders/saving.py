"""Our trainer with a larger model, which saves once in a block: in the background, or while it waits, or not at all."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
from typing_extensions import override

from benchmarks.baton import Baton
from benchmarks.workload import Work
from ddpk8s_trainer.callbacks import Callback
from ddpk8s_trainer.main import main
from ddpk8s_trainer.run import Run
from ddpk8s_trainer.signals import StopRequest


class _Turns(Callback):
    """The turn is `none`, `async`, `sync` or `plain`; a block ends when what it began to save is on the disk."""

    def __init__(self, baton: Baton, steps: int) -> None:
        self._baton, self._steps = baton, steps
        self._turn = ""

    @override
    def before_step(self, run: Run, step: int) -> None:
        if step % self._steps == 1:
            self._turn = self._baton.wait()

    @override
    def after_step(self, run: Run, step: int) -> None:
        if step % self._steps == 1 and self._turn in ("async", "sync"):
            run.save(wait=self._turn == "sync")
        if step % self._steps == 1 and self._turn == "plain":
            _save_plainly(run)
        if step % self._steps == 0:
            run.collect_saves(must_succeed=True)
            self._baton.give_back()


def _save_plainly(run: Run) -> None:
    """Save as most loops do: rank 0 writes one file, the others wait."""
    if run.gang.is_main:
        with Path("plain.pt").open("wb") as file:
            torch.save(run.strategy.tensors(), file)
            file.flush()
            os.fsync(file.fileno())
    dist.barrier()


def play(work: Work, baton: Baton) -> None:
    """Train as long as there are turns."""
    main(["--config", work.config], StopRequest(), [_Turns(baton, work.block_steps)])
