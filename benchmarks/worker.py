"""One rank of a contender: `python -m benchmarks.worker CONTENDER WORK MODE`.

Mode `blocks` trains for ever in turns of `block_steps` optimizer steps; mode `accuracy` trains to the end and answers
with the accuracy on the validation data; mode `own` leaves the turns to the contender.
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Protocol

from benchmarks.baton import Baton
from benchmarks.judge import accuracy
from benchmarks.workload import Work


class Guest(Protocol):
    """A loop that runs in the processes of another one, between its blocks."""

    def block(self, number: int) -> None:
        """Do what the host did in its block `number`, from 0."""


class _Turns:
    """What happens after each optimizer step in mode `blocks`."""

    def __init__(self, baton: Baton, work: Work, contender: ModuleType) -> None:
        self._baton, self._work = baton, work
        self._makers = getattr(contender, "GUESTS", {})
        self._guests: dict[str, Guest] | None = None

    def __call__(self, step: int) -> None:
        if step % self._work.block_steps:
            return
        if self._guests is None:
            self._guests = {name: make(self._work) for name, make in self._makers.items()}
        else:
            self._baton.give_back()
        while guest := self._guests.get(self._baton.wait()):
            guest.block(step // self._work.block_steps - 1)
            self._baton.give_back()


def main() -> None:
    name, path, mode = sys.argv[1:]
    work = Work.read(Path(path))
    contender = importlib.import_module(f"benchmarks.contenders.{name}")
    baton = Baton()
    if mode == "blocks":
        contender.train(work, _Turns(baton, work, contender))
    elif mode == "own":
        contender.play(work, baton)
    else:
        baton.wait()
        module = contender.train(work, lambda _step: None)
        baton.give_back(accuracy(module, work))
        baton.wait()


if __name__ == "__main__":
    main()
