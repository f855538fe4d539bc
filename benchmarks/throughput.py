"""Samples per second of all contenders, block by block in turn.

Every block is a fifth of an epoch over all reviews, see `sampling`. The steps of the tutorial loop all cost the same: it
does a few only.
"""

from pathlib import Path
from typing import Any

from benchmarks.baton import Players
from benchmarks.figures import Row, at_least, estimate
from benchmarks.sampling import PARTS
from benchmarks.workload import Reviews, Work

TUTORIAL_STEPS = 10
ROUNDS = 10
# Only training is measured: nobody evaluates or saves.
CHANGES: dict[str, Any] = {
    "checkpoint": {"interval": None},
    "epochs": 10_000,
    "data": {"validation": None},
}
RIVALS = ("raw", "hugging_face", "accelerated", "tutorial")
NAMES = {
    "raw": "a raw torch loop on the same batches",
    "hugging_face": "HF Trainer, grouped by length",
    "accelerated": "accelerate, grouped by length",
    "tutorial": "the tutorial loop, padded to 256",
}
BARS = {"raw": 0.97, "hugging_face": 1.2, "accelerated": 1.2, "tutorial": 4.0}


def measure(reviews: Reviews, rounds: int, rivals: tuple[str, ...] = RIVALS) -> list[Row]:
    """Return a line for each rival: our samples/s divided by its samples/s."""
    gangs = _start(reviews, rivals)
    ours: list[float] = []
    rates: dict[str, list[float]] = {rival: [] for rival in rivals}
    ratios: dict[str, list[float]] = {rival: [] for rival in rivals}
    try:
        for number in range(-1, rounds):  # the first round warms up
            before = gangs.rate("ours")
            for rival in rivals:
                rate = gangs.rate(rival)
                after = gangs.rate("ours")
                if number >= 0:
                    # Seconds, not rates, are averaged; and what drifts hits before and after from both sides.
                    own = 2 / (1 / before + 1 / after)
                    ours.append(own)
                    rates[rival].append(rate)
                    ratios[rival].append(own / rate)
                before = after
    finally:
        gangs.close()
    own = estimate(ours).median
    return [
        at_least(
            f"samples/s against {NAMES[rival]}",
            ratios[rival],
            BARS[rival],
            f"{own:.0f} and {estimate(rates[rival]).median:.0f} samples/s",
        )
        for rival in rivals
    ]


class _Gangs:
    """All gangs, and how many samples their blocks have."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._players: dict[str, Players] = {}
        self._steps: dict[str, int] = {}
        self.cpu: dict[str, list[float]] = {}
        """CPU seconds of one step, all ranks together, of every block."""

    def add(self, name: str, path: Path, scratch: Path) -> None:
        """Start a contender."""
        self._players[name] = Players(name, path, scratch)
        self._steps[name] = Work.read(path).block_steps

    def rate(self, name: str) -> float:
        """Run one block of a contender; return samples/s."""
        host, turn = ("ours", "raw") if name == "raw" else (name, "")
        seconds, cpu = self._players[host].play(turn)
        self.cpu.setdefault(name, []).append(sum(cpu) / self._steps[host])
        return self._batch * self._steps[host] / seconds

    def close(self) -> None:
        """End all."""
        for players in self._players.values():
            players.close()


def _start(reviews: Reviews, rivals: tuple[str, ...]) -> _Gangs:
    batch = int(reviews.document["batch"]["globalBatch"])
    block = reviews.samples // batch // PARTS
    gangs = _Gangs(batch)
    try:
        for name in ("ours", *rivals):
            if name != "raw":
                steps = TUTORIAL_STEPS if name == "tutorial" else block
                path = reviews.work(name, CHANGES, steps)
                gangs.add(name, path, reviews.directory)
    except BaseException:
        gangs.close()
        raise
    return gangs
