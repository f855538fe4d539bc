"""What is shown while a job runs: plain lines, or on a terminal a panel that is drawn anew below them."""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

from ddpk8s.local.agent import AGENT_PREFIX, PROGRESS_PREFIX, Stream
from ddpk8s.local.texts import evaluation_line, progress_line


class Display:
    """Plain lines: the workers' on their own streams, progress and our words on stderr."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.progress: dict[str, Any] = {}
        self._quiet = quiet
        self._last_line = ""
        self._last_evaluation: Any = None

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *exception: object) -> None:
        return

    def show(self, stream: Stream, line: str) -> None:
        """Show a line of the agent's output."""
        progress = _parse(line) if stream == "stdout" else None
        if progress is None:
            # Quiet, errors only: the agent tells them, with the last lines of whoever failed.
            if not self._quiet or (stream == "stderr" and line.startswith(AGENT_PREFIX)):
                self.write(stream, line)
            return
        self.progress = progress
        self._evaluation(progress.get("evaluation"))
        self.update(progress)

    def note(self, text: str) -> None:
        """Tell something of our own, unless nothing was to be told."""
        if not self._quiet:
            self.write("stderr", text)

    def write(self, stream: Stream, line: str) -> None:
        """Write a line to one of our streams; who reads it may be gone."""
        file: IO[str] = sys.stdout if stream == "stdout" else sys.stderr
        with suppress(OSError, ValueError):
            print(line, file=file, flush=True)

    def update(self, progress: Mapping[str, Any]) -> None:
        """Show how far the training is."""
        line = progress_line(progress)
        if line and line != self._last_line:
            self._last_line = line
            self.note(line)

    def _evaluation(self, evaluation: Any) -> None:
        if isinstance(evaluation, Mapping) and evaluation != self._last_evaluation:
            self._last_evaluation = evaluation
            self.note(f"evaluation  {evaluation_line(evaluation)}")


def open_display(*, quiet: bool) -> Display:
    """Return the display that fits stderr: a live one on a terminal, plain lines elsewhere."""
    if quiet or not sys.stderr.isatty():
        return Display(quiet=quiet)
    from ddpk8s.local.live import LiveDisplay, can_draw

    return LiveDisplay() if can_draw() else Display()


def _parse(line: str) -> dict[str, Any] | None:
    if not line.startswith(PROGRESS_PREFIX):
        return None
    try:
        content = json.loads(line.removeprefix(PROGRESS_PREFIX))
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
