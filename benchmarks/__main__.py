"""`python -m benchmarks [NAME ...] [--quick]`: measure, print, write results.md."""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import accuracy, checkpoint, commands, gang, overhead, throughput
from benchmarks.figures import Row
from benchmarks.table import as_markdown, write_section
from benchmarks.workload import Reviews

HOW = {
    "throughput": f"""Blocks of a tenth of an epoch, with a tenth of its short and of its long steps, in turn; two gloo
        processes of one thread each, in {throughput.LAUNCHES} launches.
        Ratio of our samples/s (the mean of the blocks before and after) to the contender's; median and 95 % interval
        by order statistics. A bar fails only if the whole interval is below it.""",
    "accuracy": """The quickstart's three epochs with every contender; the weights after the last step, one judge for
        all. Median of the seeds.""",
    "checkpoint": f"""Blocks of {checkpoint.STEPS} optimizer steps in turn, in one gang: without a save, with one in
        the background, with one that is waited for, with torch.save in rank 0 as most loops have it. Cost is what
        background saves add, divided by what the others add.""",
    "overhead": f"""Two gloo processes under one agent, which is stopped by a signal in every other block of
        {overhead.BLOCK_SECONDS:.0f} s: the workers go on without it.""",
    "gang": f"""Each agent is a process with real sockets, forked from a warm one, with a stand-in for torchrun.
        Gate: from the first fork until the last torchrun is started. Restart: from the kill of one torchrun until all
        are started again. The coordinator's share of a core is that of {gang.BEATING_SECONDS:.0f} s of heartbeats.""",
    "cli": """Each command in turn; wall time from start to exit. Given as it is: absolute times depend on the
        machine.""",
}

WITHOUT_DATA = {"cli", "overhead", "gang"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*HOW, []],
        metavar="NAME",
        help=f"{', '.join(HOW)}; by default all but accuracy",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few blocks only, and no results.md: does it run?"
    )
    options = parser.parse_args()
    names = options.names or [name for name in HOW if name != "accuracy"]
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # these are figures of processors
    all_rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        reviews = Reviews(Path(scratch)) if set(names) - WITHOUT_DATA else None
        for name in names:
            rows = _measure(name, reviews, quick=options.quick)
            all_rows += rows
            print(f"{name}\n\n{as_markdown(rows)}", flush=True)
            if not options.quick:
                write_section(name, rows, HOW[name])
    return 1 if any(row.passed is False for row in all_rows) else 0


def _measure(name: str, reviews: Reviews | None, *, quick: bool) -> list[Row]:
    without_data: dict[str, Callable[[], list[Row]]] = {
        "cli": lambda: commands.measure(3 if quick else commands.REPEATS),
        "overhead": lambda: overhead.measure(2 if quick else overhead.PAIRS),
        "gang": lambda: gang.measure((8, 16) if quick else gang.SIZES),
    }
    if reviews is None or name in WITHOUT_DATA:
        return without_data[name]()
    measures: dict[str, Callable[[], list[Row]]] = {
        "throughput": lambda: throughput.measure(reviews, *((1, 2, 1) if quick else ())),
        "accuracy": lambda: accuracy.measure(reviews, (1,) if quick else accuracy.SEEDS),
        "checkpoint": lambda: checkpoint.measure(reviews, *((2, 1) if quick else ())),
    }
    return measures[name]()


if __name__ == "__main__":
    raise SystemExit(main())
