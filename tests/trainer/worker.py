"""A rank of the trainer with a fault of its choice, given in the environment as `FAULT`.

`kill:RANK:STEP`     the rank kills itself before that step
`term:RANK:STEP`     the rank gets SIGTERM before that step (RANK `all`: every rank)
`overflow:RANK:STEP` the rank's gradient is infinite in that step, once
"""

import os
import signal
import sys

from ddpk8s_trainer.callbacks import Callback
from ddpk8s_trainer.main import main
from ddpk8s_trainer.run import Run
from ddpk8s_trainer.signals import StopRequest


class Fault(Callback):
    """Does at a step what the environment says."""

    def __init__(self, text: str) -> None:
        self.kind, rank, step = (text or "none:0:0").split(":")
        self.rank = None if rank == "all" else int(rank)
        self.step = int(step)

    def _here(self, run: Run, step: int) -> bool:
        return step == self.step and self.rank in (None, run.gang.rank)

    def before_step(self, run: Run, step: int) -> None:
        if self._here(run, step) and self.kind in ("kill", "term"):
            os.kill(os.getpid(), signal.SIGKILL if self.kind == "kill" else signal.SIGTERM)
        if self._here(run, step) and self.kind == "overflow":
            # A hook on the way back: the infinity goes through DDP's exchange like any other.
            parameter = next(run.strategy.module.parameters())
            handle = parameter.register_hook(lambda gradient: (handle.remove(), gradient * float("inf"))[1])


if __name__ == "__main__":
    stop = StopRequest()
    stop.install()
    sys.exit(main(sys.argv[1:], stop, [Fault(os.environ.get("FAULT", ""))]))
