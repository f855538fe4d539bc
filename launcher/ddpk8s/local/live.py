"""The panel on a terminal: a bar, below it the figures and what the gang waits for. Lines scroll by above."""

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ddpk8s.local.agent import Stream
from ddpk8s.local.display import Display
from ddpk8s.local.story import Story
from ddpk8s.local.texts import evaluation_line, figures, position, remaining

_console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def can_draw() -> bool:
    """Return whether the terminal can move its cursor (TERM=dumb cannot)."""
    return _console.is_terminal and not _console.is_dumb_terminal


class LiveDisplay(Display):
    """A bar with phase, step and remaining time; below it loss, speed, the last evaluation, and the gang."""

    def __init__(self) -> None:
        super().__init__()
        self._live = Live(
            panel({"phase": "starting"}, self.story),
            console=_console,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
        )

    def __enter__(self) -> "LiveDisplay":
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def write(self, stream: Stream, line: str) -> None:
        """Write a line above the panel; stdout that is no terminal gets its lines as they are."""
        if stream == "stdout" and not sys.stdout.isatty():
            super().write(stream, line)
        else:
            _console.print(Text.from_ansi(line))

    def update(self, progress: Mapping[str, Any]) -> None:
        """Draw the panel anew."""
        self._live.update(panel(progress, self.story))

    def retell(self) -> None:
        """Draw the panel anew."""
        self.update(self.progress)

    def say(self, node: int, text: str) -> None:
        """Show what an agent says, but who is waited for in the panel only, where it does not pile up."""
        if node or not text or text != self.story.waiting:
            super().say(node, text)


def panel(progress: Mapping[str, Any], story: Story) -> RenderableType:
    """Return what is drawn: the newest progress, and where the gang is."""
    step, total = progress.get("step") or 0, progress.get("total")
    grid = Table.grid(padding=(0, 1), expand=False)
    bar = ProgressBar(total=total or 100, completed=step if total else 0, pulse=not total, width=30)
    phase = story.phase or str(progress.get("phase", "training"))
    left = "" if story.phase else remaining(progress)  # nothing goes on
    grid.add_row(phase, bar, position(progress), left)
    details = "  ".join(figures(progress))
    evaluation = progress.get("evaluation")
    if isinstance(evaluation, Mapping):
        details += f"  |  {evaluation_line(evaluation)}"
    lines = [details, story.line] if story.line else [details]
    return Group(grid, *(Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in lines))
