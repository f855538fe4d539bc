"""Can every rank write the job directory, and is it the same one everywhere?"""

import errno
import os
import socket
import uuid
from collections.abc import Callable
from pathlib import Path

from ddpk8s_trainer.checkpoint.ranks import Ranks
from ddpk8s_trainer.checkpoint.space import error_in_words
from ddpk8s_trainer.errors import CheckpointMistake


def check_usable(ranks: Ranks, path: Path) -> None:
    """Make the job directory, and check that every rank can write it and sees what rank 0 wrote. Collective.

    Raises:
        CheckpointMistake: On every rank, with the first rank's problem.
    """
    mark = path / ranks.broadcast(f".probe-{uuid.uuid4().hex}")
    problem = mistake_of(lambda: _make(mark), path) if ranks.rank == 0 else None
    raise_first(ranks.gather(problem))
    problems = ranks.gather(mistake_of(lambda: _probe(mark, ranks.rank), path))
    if ranks.rank == 0:
        mark.unlink(missing_ok=True)
    raise_first(problems)


def _make(mark: Path) -> None:
    if mark.parent.exists() and not mark.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(mark.parent))
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def _probe(mark: Path, rank: int) -> None:
    if not mark.exists():
        raise CheckpointMistake(
            f"checkpoint directory {mark.parent}: rank {rank} on {socket.gethostname()} does not see "
            "what rank 0 writes there",
            hint="training.checkpoint.directory must be on a volume that all nodes share",
        )
    own = mark.with_name(f"{mark.name}-{rank}")
    own.touch()
    own.unlink()


def mistake_of(action: Callable[[], object], path: Path) -> CheckpointMistake | None:
    """Run something on the job directory; what went wrong, as the user's mistake, to tell the other ranks."""
    try:
        action()
    except CheckpointMistake as mistake:
        return mistake
    except OSError as error:
        where = "" if error.filename in (None, str(path)) else f"{error.filename}: "
        return CheckpointMistake(
            f"checkpoint directory {path} cannot be used: {where}{error_in_words(error)}",
            hint=f"training.checkpoint.directory must be a directory that user id {os.getuid()} may write",
        )
    return None


def raise_first(problems: list[CheckpointMistake | None]) -> None:
    """Raise the first rank's mistake, if any: the same on every rank."""
    for problem in problems:
        if problem is not None:
            raise CheckpointMistake(problem.message, problem.hint)
