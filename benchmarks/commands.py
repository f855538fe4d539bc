"""How long the command line takes to start, beside the least Python can do and beside kubectl."""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.figures import Row
from benchmarks.workload import JOB

REPEATS = 15
BARS = {"ddpk8s --help": 0.150, "ddpk8s validate": 0.300}


def measure(repeats: int = REPEATS) -> list[Row]:
    """Return a line for each command; all take turns, so that a slow moment hits all."""
    program = str(Path(sys.executable).parent / "ddpk8s")
    commands = {
        "ddpk8s --help": [program, "--help"],
        "ddpk8s validate": [program, "validate", "-f", str(JOB)],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    if kubectl := shutil.which("kubectl"):
        commands["kubectl version --client"] = [kubectl, "version", "--client"]
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(-1, repeats):  # the first round fills the disk cache
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            if number >= 0:
                seconds[name].append(time.perf_counter() - start)
    return [_row(name, values) for name, values in seconds.items()]


def _row(name: str, values: list[float]) -> Row:
    bar = BARS.get(name)
    figure = f"{min(values) * 1000:.0f} ms best, {median(values) * 1000:.0f} ms median"
    if bar is None:
        return Row(name, figure, detail=f"of {len(values)}")
    return Row(name, figure, f"<= {bar * 1000:.0f} ms", min(values) <= bar, f"of {len(values)}")
