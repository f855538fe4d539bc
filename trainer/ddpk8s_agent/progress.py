"""How far the training is: the bundled trainer says it, in other scripts a regular expression finds it."""

import json
import math
import os
import re
import time
from typing import Any

PREFIX = "ddpk8s-progress: "
_INTEGERS = ("step", "total")
_NAMES = {"lr": "learningRate"}


def parse_line(line: str) -> dict[str, Any] | None:
    """Return the content of a progress line, or None if it is none."""
    if not line.startswith(PREFIX):
        return None
    try:
        content = json.loads(line[len(PREFIX) :])
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


class Progress:
    """The newest step of one attempt, and the progress lines to show.

    Attributes:
        step: The newest step, if any was seen.
        signs: How often progress was seen, a newer step or not.
    """

    def __init__(self, attempt: int, regex: str | None) -> None:
        self.step: int | None = None
        self.signs = 0
        self._attempt = attempt
        self._regex = re.compile(regex) if regex else None
        self._interval = float(os.environ.get("DDPK8S_PROGRESS_SECONDS") or 10.0)
        self._last_shown = float("-inf")
        self._waiting: dict[str, Any] | None = None
        self._first: tuple[int, float] | None = None

    def observe(self, line: str) -> str | None:
        """Look at a line of rank 0; return a progress line made of it, if one is due.

        Lines that are progress lines already only move `step`.
        """
        content = parse_line(line)
        if content is not None:
            self.signs += 1
            self._advance(content.get("step"))
            return None
        match = self._regex.search(line) if self._regex else None
        if not match:
            return None
        self.signs += 1
        content = self._content(match.groupdict())
        self._advance(content.get("step"))
        self._waiting = content
        return self.flush() if time.monotonic() - self._last_shown >= self._interval else None

    def flush(self) -> str | None:
        """Return the newest progress that was held back, if any."""
        content, self._waiting = self._waiting, None
        if content is None:
            return None
        self._last_shown = time.monotonic()
        return PREFIX + json.dumps(content)

    def _advance(self, step: Any) -> None:
        if isinstance(step, int) and (self.step is None or step > self.step):
            self.step = step

    def _content(self, groups: dict[str, str | None]) -> dict[str, Any]:
        content: dict[str, Any] = {"attempt": self._attempt, "phase": "training"}
        for name, text in groups.items():
            value = _number(text, whole=name in _INTEGERS)
            if value is not None:
                content[_NAMES.get(name, name)] = value
        step, total = content.get("step"), content.get("total")
        if step is not None:
            now = time.monotonic()
            first_step, since = self._first = self._first or (step, now)
            if total is not None and step > first_step:
                content["etaSeconds"] = round((total - step) * (now - since) / (step - first_step), 1)
        return content


def _number(text: str | None, *, whole: bool) -> int | float | str | None:
    """Return a number of the output; not-a-number stays a word, for it must not hide (and JSON has none)."""
    if text is None:
        return None
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return text
    if not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    return int(value) if whole else value
