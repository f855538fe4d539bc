"""Signs of life of this node's ranks: the bundled trainer's beat files, or what scripts print.

A sign is that something changed since we last looked; no clock but our own is ever read.
"""

import json
import time
from pathlib import Path

from ddpk8s_agent.logs import WorkerLogs
from ddpk8s_agent.plan import Plan
from ddpk8s_agent.progress import Progress

Beat = tuple[int, int | None, float, bool]
_EVERY_SECONDS = 1.0


class Beats:
    """Looks at the ranks once a second."""

    def __init__(self, plan: Plan, status_directory: Path, progress: Progress, logs: WorkerLogs) -> None:
        self._plan = plan
        self._directory = status_directory
        self._progress = progress
        self._logs = logs
        now = time.monotonic()
        never: tuple[object, int | None, float, bool] = (None, None, now, False)
        self._seen = dict.fromkeys(plan.ranks, never)
        self._looked = now

    @property
    def step(self) -> int | None:
        """The newest step any rank here has finished."""
        steps = [step for _, step, _, _ in self._seen.values() if step is not None]
        if self._progress.step is not None:
            steps.append(self._progress.step)
        return max(steps, default=None)

    def due(self) -> bool:
        """Return whether it is time to look again."""
        return time.monotonic() - self._looked >= _EVERY_SECONDS

    def look(self) -> tuple[Beat, ...]:
        """Return for each rank: its number, newest step, seconds since its last sign, whether it ever gave one."""
        now = self._looked = time.monotonic()
        for rank, (before, known, since, ever) in self._seen.items():
            sign, step = self._sign(rank)
            step = known if step is None else step
            fresh = sign is not None and sign != before
            self._seen[rank] = (sign, step, now, True) if fresh else (before, step, since, ever)
        return tuple(
            (rank, step, round(now - since, 1), ever) for rank, (_, step, since, ever) in self._seen.items()
        )

    def _sign(self, rank: int) -> tuple[object, int | None]:
        """Return what changes while the rank is alive, and its step."""
        if self._plan.command.module is not None:
            return _beat(self._directory / f"rank-{rank}.beat")
        if self._plan.progress_regex is not None:
            # Only rank 0's output is searched for progress.
            return (self._progress.signs or None, self._progress.step) if rank == 0 else (None, None)
        return self._logs.lines.get(rank) or None, None


def _beat(path: Path) -> tuple[object, int | None]:
    try:
        content = json.loads(path.read_bytes())
        number, step = content["n"], content.get("step")
        return number, step if isinstance(step, int) and not isinstance(step, bool) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None, None
