"""Write the report of a job directory: `python -m ddpk8s_trainer.report JOBDIR`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ddpk8s_trainer.errors import TrainerError
from ddpk8s_trainer.report.page import write_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report and print where it is; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ddpk8s_trainer.report", description=__doc__)
    parser.add_argument(
        "directory", type=Path, metavar="JOBDIR", help="job directory, with metrics.jsonl in it"
    )
    try:
        print(write_report(parser.parse_args(arguments).directory))  # noqa: T201 - standard output is the result
    except TrainerError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
