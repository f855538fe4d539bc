"""What is shown while a job runs: plain lines, or on a terminal a panel that is drawn anew below them."""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

from ddpk8s.local.agent import AGENT_PREFIX, PROGRESS_PREFIX, Line, Stream
from ddpk8s.local.story import Mistakes, Story, is_gate
from ddpk8s.local.texts import evaluation_line, progress_line


class Display:
    """Plain lines: the workers' on their own streams, progress and our words on stderr."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.progress: dict[str, Any] = {}
        self.story = Story()
        self._quiet = quiet
        self._last_line = ""
        self._last_evaluation: Any = None
        self._mistakes = Mistakes()

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *exception: object) -> None:
        return

    def show(self, line: Line) -> None:
        """Show a line of an agent's output."""
        if line.stream == "stderr" and line.text.startswith(AGENT_PREFIX):
            self._hear(line.node, line.text.removeprefix(AGENT_PREFIX))
            return
        # Rank 0, whose progress it is, is on node 0.
        progress = _parse(line.text) if line.stream == "stdout" and line.node == 0 else None
        if progress is None:
            # Quiet, errors only: the agent tells them, with the last lines of whoever failed.
            if not self._quiet:
                self.write(line.stream, line.text)
            return
        self.progress = progress
        self.story.trains()
        self._evaluation(progress.get("evaluation"))
        self.update(progress)

    def say(self, node: int, text: str) -> None:
        """Show what an agent says itself; those of other nodes than 0 are told by their rank."""
        name = f"ddpk8s-agent[{node}]: " if node else AGENT_PREFIX
        self.write("stderr", name + text)

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

    def _hear(self, node: int, text: str) -> None:
        if node == 0 and self.story.hear(text):
            self.retell()
        if not self._mistakes.is_repeated(node, text) and not (self._quiet and is_gate(text)):
            self.say(node, text)

    def retell(self) -> None:
        """Show where the gang is, as it has changed; in plain lines the agents' own words do."""

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
