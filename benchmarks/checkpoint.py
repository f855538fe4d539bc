"""What saving costs the training: in the background, against waiting for it."""

from statistics import median
from typing import Any

from benchmarks.baton import Players
from benchmarks.figures import Row, at_most
from benchmarks.workload import Reviews

STEPS = 20
ROUNDS = 10
BAR = 0.15
# About 21 million parameters, 250 MB of state, in short steps.
MODEL = {
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
}
BATCH = 8
TURNS = ("none", "async", "sync")


def measure(reviews: Reviews, rounds: int = ROUNDS) -> list[Row]:
    """Return the cost of background saves as a share of that of waited-for ones, and the seconds behind it."""
    changes: dict[str, Any] = {
        "data": {"train": str(reviews.head(STEPS * BATCH)), "validation": None},
        "model": {"config": {**reviews.document["model"]["config"], **MODEL}},
        "batch": {"globalBatch": BATCH},
        "checkpoint": {"interval": None},
        "epochs": 10_000,
    }
    players = Players("saving", reviews.work("saving", changes, STEPS), reviews.directory, "own")
    seconds: dict[str, list[float]] = {turn: [] for turn in TURNS}
    try:
        for number in range(-1, rounds):
            # Each kind is first, second and last equally often.
            at = number % len(TURNS)
            for turn in TURNS[at:] + TURNS[:at]:
                played = players.play(turn)
                if number >= 0:
                    seconds[turn].append(played.seconds)
    finally:
        players.close()
    without = seconds["none"]
    background = [wall - none for wall, none in zip(seconds["async"], without, strict=True)]
    waited = median(wall - none for wall, none in zip(seconds["sync"], without, strict=True))
    detail = f"{median(background):.2f} s of {waited:.2f} s a save, blocks of {median(without):.1f} s"
    return [at_most("cost of background saves", [cost / waited for cost in background], BAR, detail)]
