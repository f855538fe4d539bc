"""What saving costs the training: in the background, against waiting for it."""

from statistics import median
from typing import Any

from benchmarks.baton import Played, Players
from benchmarks.figures import Row, at_most, estimate
from benchmarks.throughput import ENOUGH, FOREIGN
from benchmarks.workload import Reviews

STEPS = 20
ROUNDS, TRIES = 10, 2
BAR = 0.15
# About 33 million parameters, 400 MB of state, in short steps.
MODEL = {
    "vocab_size": 40_000,
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
}
BATCH = 8
TURNS = ("none", "async", "sync", "plain")


def measure(reviews: Reviews, rounds: int = ROUNDS, tries: int = TRIES) -> list[Row]:
    """Return the cost of background saves as a share of that of waited-for ones, and the seconds behind it.

    Args:
        reviews: The data.
        rounds: Quiet rounds wanted.
        tries: After so many times as many rounds no more are added.
    """
    changes: dict[str, Any] = {
        "data": {"train": str(reviews.head(STEPS * BATCH)), "validation": None},
        "model": {"config": {**reviews.document["model"]["config"], **MODEL}},
        "batch": {"globalBatch": BATCH},
        "checkpoint": {"interval": None},
        "epochs": 10_000,
    }
    players = Players("saving", reviews.work("saving", changes, STEPS), reviews.directory, "own")
    done: list[dict[str, Played]] = []
    try:
        for number in range(-1, rounds * tries):  # the first round warms up
            # Each kind is first, second and last equally often.
            at = number % len(TURNS)
            played = {turn: players.play(turn) for turn in TURNS[at:] + TURNS[:at]}
            if number >= 0:
                done.append(played)
            if len(_quiet(done)) == rounds:
                break
    finally:
        players.close()
    quiet = _quiet(done)
    return _rows(quiet if len(quiet) >= min(rounds, ENOUGH) else done, len(done) - len(quiet))


def _quiet(rounds: list[dict[str, Played]]) -> list[dict[str, Played]]:
    return [each for each in rounds if all(played.foreign <= FOREIGN for played in each.values())]


def _rows(rounds: list[dict[str, Played]], disturbed: int) -> list[Row]:
    added = {turn: [each[turn].seconds - each["none"].seconds for each in rounds] for turn in TURNS}
    cost = {turn: median(seconds) for turn, seconds in added.items()}
    block = median(each["none"].seconds for each in rounds)
    detail = f"blocks of {block:.1f} s" + (f"; {disturbed} rounds were disturbed" if disturbed else "")
    return [
        at_most(
            "cost of a background save, of one with torch.save in rank 0",
            [seconds / cost["plain"] for seconds in added["async"]],
            BAR,
            f"{cost['async']:.2f} s of {cost['plain']:.2f} s; {detail}",
        ),
        # No bar: our own save that is waited for writes past the page cache from all ranks. Where the disk takes
        # data as fast as memory is copied, the copy alone, which leaves the training free, costs half of it.
        Row(
            "the same, of our own save that is waited for",
            str(estimate([seconds / cost["sync"] for seconds in added["async"]])),
            detail=f"{cost['async']:.2f} s of {cost['sync']:.2f} s",
        ),
    ]
