"""Samples per second of all contenders, block by block in turn.

Every block is a tenth of an epoch over all reviews, see `sampling`. The steps of the tutorial loop all cost the same:
it does a few only. Pairs in which other programs took the processors are repeated, up to a limit.
"""

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.baton import Players
from benchmarks.figures import Row, at_least
from benchmarks.sampling import PARTS
from benchmarks.workload import Reviews, Work

TUTORIAL_STEPS = 10
LAUNCHES, ROUNDS, TRIES = 2, 6, 2
ENOUGH = 6  # quiet pairs that have a 95 % interval
FOREIGN = 0.1  # share of the machine that other programs may take
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


def measure(
    reviews: Reviews, launches: int = LAUNCHES, rounds: int = ROUNDS, tries: int = TRIES
) -> list[Row]:
    """Return a line for each rival: our samples/s divided by its samples/s.

    Args:
        reviews: The data.
        launches: How often all gangs are started anew: two starts of one program differ by a few per cent.
        rounds: Quiet pairs wanted of each rival and launch.
        tries: After so many times as many pairs no more are added.
    """
    pairs: dict[str, list[Pair]] = {rival: [] for rival in RIVALS}
    for launch in range(1, launches + 1):
        gangs = _start(reviews)
        try:
            _play(gangs, pairs, launch * rounds, tries * rounds)
        finally:
            gangs.close()
    return [_row(rival, found, launches * rounds) for rival, found in pairs.items()]


def _play(gangs: "_Gangs", pairs: dict[str, list["Pair"]], wanted: int, most: int) -> None:
    """Add pairs until there are `wanted` quiet ones of every rival, `most` at most."""
    for rival in RIVALS:
        gangs.block(rival)  # warms up
    before = gangs.block("ours")
    for _ in range(most):
        for rival in RIVALS:
            if len(_quiet(pairs[rival])) < wanted:
                block = gangs.block(rival)
                after = gangs.block("ours")
                pairs[rival].append(Pair(before, block, after))
                before = after


@dataclass(frozen=True)
class Block:
    """One block: samples/s, and the share of the machine that other programs took meanwhile."""

    rate: float
    foreign: float


@dataclass(frozen=True)
class Pair:
    """A rival's block between two of ours."""

    before: Block
    rival: Block
    after: Block

    @property
    def own_rate(self) -> float:
        """Our samples/s; seconds, not rates, are averaged."""
        return 2 / (1 / self.before.rate + 1 / self.after.rate)

    @property
    def ratio(self) -> float:
        """Our samples/s over the rival's."""
        return self.own_rate / self.rival.rate

    @property
    def quiet(self) -> bool:
        """Whether other programs kept still."""
        return max(self.before.foreign, self.rival.foreign, self.after.foreign) <= FOREIGN


def _quiet(pairs: list[Pair]) -> list[Pair]:
    return [pair for pair in pairs if pair.quiet]


def _row(rival: str, pairs: list[Pair], wanted: int) -> Row:
    """Return the line of a rival: of quiet pairs if there are enough, else of all."""
    quiet = _quiet(pairs)
    disturbed = len(pairs) - len(quiet)
    used = quiet if len(quiet) >= min(wanted, ENOUGH) else pairs
    note = f"; {disturbed} pairs were disturbed by other programs" if disturbed else ""
    note += " and are left out" if disturbed and used is quiet else ""
    own = median(pair.own_rate for pair in used)
    theirs = median(pair.rival.rate for pair in used)
    return at_least(
        f"samples/s against {NAMES[rival]}",
        [pair.ratio for pair in used],
        BARS[rival],
        f"{own:.0f} and {theirs:.0f} samples/s{note}",
    )


class _Gangs:
    """All gangs, and how many samples their blocks have."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._players: dict[str, Players] = {}
        self._steps: dict[str, int] = {}

    def add(self, name: str, path: Path, scratch: Path) -> None:
        """Start a contender."""
        self._players[name] = Players(name, path, scratch)
        self._steps[name] = Work.read(path).block_steps

    def block(self, name: str) -> Block:
        """Run one block of a contender."""
        host, turn = ("ours", "raw") if name == "raw" else (name, "")
        played = self._players[host].play(turn)
        return Block(self._batch * self._steps[host] / played.seconds, played.foreign)

    def close(self) -> None:
        """End all."""
        for players in self._players.values():
            players.close()


def _start(reviews: Reviews) -> _Gangs:
    batch = int(reviews.document["batch"]["globalBatch"])
    block = reviews.samples // batch // PARTS
    gangs = _Gangs(batch)
    try:
        for name in ("ours", *RIVALS):
            if name != "raw":
                steps = TUTORIAL_STEPS if name == "tutorial" else block
                gangs.add(name, reviews.work(name, CHANGES, steps), reviews.directory)
    except BaseException:
        gangs.close()
        raise
    return gangs
