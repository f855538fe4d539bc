"""What the trainer leaves for the agent, and says to people, when it ends."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from ddpk8s_trainer.errors import TrainerError

STATUS_VARIABLE = "DDPK8S_STATUS_DIR"


def write_status(name: str, content: dict[str, Any]) -> None:
    """Write a small JSON file for the agent; without an agent, nothing."""
    directory = os.environ.get(STATUS_VARIABLE)
    if not directory:
        return
    path = Path(directory) / name
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(path)


def report_error(error: BaseException, rank: int, step: int | None = None) -> int:
    """Say how this rank ends and return its exit code; an echo of another rank's error is not said again."""
    if not isinstance(error, TrainerError):
        reason, message, hint, code = type(error).__name__, str(error), None, 1
    else:
        reason, message, hint, code = error.reason, error.message, error.hint, error.exit_code
        step = error.step if error.step is not None else step
        if error.secondary:
            return code
        # Under the agent it is the agent that says it, once; else rank 0 speaks for what all ranks agreed on.
        if STATUS_VARIABLE not in os.environ and (rank == 0 or code == 78):
            label = "" if code == 143 else "error: "
            print(f"{label}{message}" + (f"\nhint: {hint}" if hint else ""), file=sys.stderr, flush=True)  # noqa: T201
    if code != 143:
        entry = {
            "rank": rank,
            "reason": reason,
            "message": message,
            "hint": hint,
            "step": step,
            "exitCode": code,
        }
        entry["repeats"] = getattr(error, "repeats", False)
        write_status(f"rank-{rank}.error.json", entry)
    return code
