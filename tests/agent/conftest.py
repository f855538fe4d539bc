"""A job for each test; nothing of it lives on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.harness import Job


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path)
    yield job
    job.clean_up()
