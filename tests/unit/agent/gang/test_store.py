"""The ledger in real files."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddpk8s_agent.gang.ledger import CHARGED, FREE, Ledger, Record
from ddpk8s_agent.gang.store import Store

LEDGER = Ledger("run", attempt=1).decided(0, Record(CHARGED, "rank 1 failed"))


class Said:
    """A store, what it said, and what came of its commits."""

    def __init__(self, own: Path, shared: Path | None) -> None:
        self.lines: list[str] = []
        self.written: list[bool] = []
        self.store = Store(own, shared, self.lines.append)

    def commit(self, ledger: Ledger) -> bool:
        """Commit; return whether it is on the volume."""
        said = threading.Event()

        def done(written: bool) -> None:
            self.written.append(written)
            said.set()

        self.store.commit(ledger.to_document(), done)
        assert said.wait(10), "it was never said"
        return self.written[-1]


@pytest.fixture
def said(tmp_path: Path) -> Iterator[Said]:
    said = Said(tmp_path / "pod" / "ledger.json", tmp_path / "volume" / ".ddpk8s" / "run.json")
    yield said
    said.store.close(10)


def test_both_files_are_read_back(said: Said, tmp_path: Path) -> None:
    said.store.remember(LEDGER.to_document())
    assert said.commit(LEDGER)
    assert said.store.load() == [LEDGER, LEDGER]
    assert not list(tmp_path.rglob("*.partial"))


def test_nothing_is_there_in_the_beginning(said: Said) -> None:
    assert said.store.load() == []


@pytest.mark.parametrize(
    "text",
    ["", '{"token": "ru', "[]", "5", '{"token": "run", "base": Infinity, "attempt": 0, "records": {}}'],
)
def test_a_broken_file_counts_as_none_and_is_replaced(said: Said, tmp_path: Path, text: str) -> None:
    path = tmp_path / "volume" / ".ddpk8s" / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert said.store.load() == []
    assert said.commit(LEDGER)
    assert said.store.load() == [LEDGER]


def test_what_another_coordinator_wrote_stays_when_a_ledger_is_committed(said: Said) -> None:
    other = Ledger("run", attempt=2).decided(1, Record(FREE, "node 1 is gone"))
    assert said.commit(other)
    assert said.commit(LEDGER)
    (kept,) = said.store.load()
    assert kept == LEDGER.merge(other)
    assert sorted(kept.records) == [0, 1]


def test_the_shared_file_is_read_again_when_asked(said: Said) -> None:
    found: list[Any] = []
    said.store.look(found.append)
    assert said.commit(LEDGER)
    assert found == [], "there was nothing before"
    for _ in range(2):
        said.store.look(found.append)
        assert said.commit(LEDGER)
    assert found == [LEDGER.to_document()] * 2


def test_the_ledger_of_another_launch_is_replaced(said: Said) -> None:
    assert said.commit(Ledger("earlier", attempt=7))
    assert said.commit(LEDGER)
    assert said.store.load() == [LEDGER]


def test_it_is_said_that_it_is_not_on_a_volume_when_there_is_none(tmp_path: Path) -> None:
    said = Said(tmp_path / "ledger.json", None)
    assert not said.commit(LEDGER)
    assert said.lines == []
    said.store.close(10)
    assert said.store.load() == []


def test_it_is_complained_of_once_when_the_volume_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "volume").write_text("a file, where a directory should be")
    said = Said(tmp_path / "ledger.json", tmp_path / "volume" / "run.json")
    assert not said.commit(LEDGER)
    assert not said.commit(LEDGER)
    said.store.close(10)
    assert len(said.lines) == 1
    assert "attempts are counted in memory only" in said.lines[0]


def test_closing_waits_no_longer_than_asked_when_the_volume_hangs(tmp_path: Path) -> None:
    pipe = tmp_path / "ledger.json"
    os.mkfifo(pipe)
    said = Said(tmp_path / "own.json", pipe)
    said.store.commit(LEDGER.to_document(), said.written.append)  # reading the pipe never ends
    said.store.close(0.2)
    assert said.written == []
    with pipe.open("w") as writer:
        writer.write(json.dumps(LEDGER.to_document()))
