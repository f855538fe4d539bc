"""Our trainer, through its own entry point, with its defaults; between its blocks it hosts the raw loop.

The raw loop runs in the same processes: at three per cent, what differs between two starts of one program would count.
"""

from torch import nn
from typing_extensions import override

from benchmarks.contenders.raw import RawLoop
from benchmarks.sampling import SampledPlan
from benchmarks.workload import OnStep, Work
from ddpk8s_trainer.callbacks import Callback
from ddpk8s_trainer.main import main
from ddpk8s_trainer.run import Run
from ddpk8s_trainer.signals import StopRequest

GUESTS = {"raw": RawLoop}


class _Hook(Callback):
    def __init__(self, work: Work, on_step: OnStep) -> None:
        self._work, self._on_step = work, on_step
        self.run: Run | None = None

    @override
    def before_step(self, run: Run, step: int) -> None:
        if self.run is None:
            self.run = run
            if self._work.block_steps:
                run.plan = SampledPlan(self._work)
            self._on_step(step - 1)

    @override
    def after_step(self, run: Run, step: int) -> None:
        self._on_step(step)


def train(work: Work, on_step: OnStep) -> nn.Module:
    """Train and return the model."""
    hook = _Hook(work, on_step)
    code = main(["--config", work.config], StopRequest(), [hook])
    if code or hook.run is None:
        raise RuntimeError(f"the trainer ended with {code}")
    return hook.run.strategy.module
