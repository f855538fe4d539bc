"""The accuracy of all contenders after the same epochs: what is faster must not learn less."""

from statistics import median
from typing import Any

from benchmarks.baton import Players
from benchmarks.figures import Row
from benchmarks.workload import Reviews

SEEDS = (1, 2, 3)
MARGIN = 0.005
NAMES = {"ours": "ours", "hugging_face": "HF Trainer", "tutorial": "the tutorial loop"}


def measure(reviews: Reviews, seeds: tuple[int, ...] = SEEDS) -> list[Row]:
    """Return the validation accuracy of each contender: the median of its seeds."""
    results = {name: [_train(reviews, name, seed) for seed in seeds] for name in NAMES}
    ours = median(results["ours"])
    rows = []
    for name, values in results.items():
        each = ", ".join(f"{value:.4f}" for value in values)
        bar = "" if name == "ours" else f"ours at most {MARGIN:.3f} lower"
        passed = None if name == "ours" else ours >= median(values) - MARGIN
        rows.append(
            Row(
                f"validation accuracy of {NAMES[name]}",
                f"{median(values):.4f}",
                bar,
                passed,
                f"seeds: {each}",
            )
        )
    return rows


def _train(reviews: Reviews, name: str, seed: int) -> float:
    changes: dict[str, Any] = {
        "seed": seed,
        # The weights after the last step are judged, and nobody else judges before.
        "output": {"export": False, "report": False, "model": "last"},
        "checkpoint": {"interval": None},
        "resume": "never",
    }
    path = reviews.work(f"{name}-{seed}", changes)
    players = Players(name, path, reviews.directory, "accuracy")
    try:
        answers = players.play().answers
    finally:
        players.close()
    return answers[0]
