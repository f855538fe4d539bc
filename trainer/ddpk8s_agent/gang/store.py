"""The ledger in files: one of this node, and the coordinator's on the volume that all nodes share.

Written by a thread of its own, for a volume may hang, and that must never keep an agent from giving signs of life.
"""

import json
import os
import queue
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ddpk8s_agent.gang.ledger import Ledger, from_document, union

_Job = Callable[[], None]
_NO_LEDGER = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


class Store:
    """Reads and writes both files; either may be absent."""

    def __init__(self, own: Path, shared: Path | None, say: Callable[[str], None]) -> None:
        self._own, self._shared = own, shared
        self._say = say
        self._complained = self._looking = False
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    def load(self) -> list[Ledger]:
        """Return the ledgers that are there, of whatever launch; half-written ones do not exist."""
        found = [_read(path) for path in (self._own, self._shared) if path is not None]
        return [ledger for ledger in found if ledger is not None]

    def remember(self, ledger: Mapping[str, Any]) -> None:
        """Write this node's own file, some time."""
        self._jobs.put(lambda: self._write(self._own, ledger, lambda _written: None))

    def commit(self, ledger: Mapping[str, Any], done: Callable[[bool], None]) -> None:
        """Merge a ledger into the shared file, and say `done` (in another thread), with whether it is on the volume."""
        self._jobs.put(lambda: self._write(self._shared, ledger, done))

    def look(self, found: Callable[[Mapping[str, Any]], None]) -> None:
        """Read the shared file again, and tell (in another thread) what was `found`, if anything was."""
        if self._shared is not None and not self._looking:
            self._looking = True
            self._jobs.put(lambda: self._look(found))

    def close(self, seconds: float) -> None:
        """Write what is queued, but wait no longer than `seconds`."""
        self._jobs.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _write(self, path: Path | None, ledger: Mapping[str, Any], done: Callable[[bool], None]) -> None:
        written = False
        try:
            if path is not None:
                # An earlier coordinator, out of sight only, may have written there what we do not know.
                _replace(path, json.dumps(_merged(ledger, path) if path == self._shared else ledger))
                written = True
        except OSError as error:
            if not self._complained:
                self._complained = True
                self._say(f"cannot write {path}: {error.strerror}; attempts are counted in memory only")
        done(written)

    def _look(self, found: Callable[[Mapping[str, Any]], None]) -> None:
        ledger = _read(self._shared) if self._shared is not None else None
        self._looking = False
        if ledger is not None:
            found(ledger.to_document())


def _read(path: Path) -> Ledger | None:
    """Return the ledger in a file, if there is a whole one."""
    with suppress(*_NO_LEDGER):
        return from_document(json.loads(path.read_text(encoding="utf-8")))
    return None


def _merged(ledger: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    there = _read(path)
    return ledger if there is None else union(from_document(ledger), [there]).to_document()


def _replace(path: Path, text: str) -> None:
    """Put a file in place, whole and durable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: in containers, agents have the same pid everywhere.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    with suppress(OSError):  # some file systems cannot flush a directory
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
