"""A job for each test; nothing of it lives on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.gang import Gang
from tests.agent.harness import Job
from tests.agent.recorder import Recorder


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path)
    yield job
    job.clean_up()


@pytest.fixture
def gang(tmp_path: Path) -> Iterator[Gang]:
    gang = Gang(tmp_path)
    yield gang
    gang.clean_up()


@pytest.fixture
def watched(gang: Gang) -> Iterator[Gang]:
    """A gang of which somebody else makes sure that it never runs twice at once."""
    recorder = Recorder(gang)
    yield gang
    recorder.close()
