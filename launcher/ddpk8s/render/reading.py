"""A job file with all that is read for its objects: code, fabric profile, and the place of every mistake."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddpk8s.errors import SpecErrors
from ddpk8s.fabric import Additions
from ddpk8s.render.archive import File
from ddpk8s.render.code import read_code
from ddpk8s.render.errors import RenderProblems
from ddpk8s.render.manifests import Rendering, render
from ddpk8s.render.network import read_network
from ddpk8s.render.schema import NEWEST
from ddpk8s.spec.document import Document
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.load import load_document, read_document
from ddpk8s.spec.problems import LocatedProblem


@dataclass(frozen=True)
class Source:
    """A job file as read.

    Attributes:
        document: What it holds, with the place of each field.
        directory: Where it lies.
        job: The job in it.
        code: Files of the job's code, or None.
        extras: What the network needs.
    """

    document: Document
    directory: Path
    job: TrainingJob
    code: tuple[File, ...] | None
    extras: Additions

    def render(self, run_id: str | None = None, version: str = NEWEST) -> Rendering:
        """Return the objects of the job.

        Raises:
            SpecErrors: mistakes that show only in the objects, each with its place.
        """
        try:
            return render(self.job, run_id=run_id, code=self.code, extras=self.extras, version=version)
        except RenderProblems as failure:
            raise _located(self.document, failure) from None


def read_source(
    path: Path | str, sets: Sequence[str] = (), warn: Callable[[LocatedProblem], None] | None = None
) -> Source:
    """Return a job file with all that belongs to it.

    Args:
        path: The file, or ``-`` for standard input.
        sets: Overrides as ``spec.topology.nnodes=4``.
        warn: Called with each warning.

    Raises:
        SpecErrors: mistakes in the file or its code, each with file, line and column.
        SpecError: a file cannot be read.
    """
    document, directory = read_document(path)
    job = load_document(document, sets, warn, directory)
    try:
        return Source(document, directory, job, read_code(job, directory), read_network(job, directory))
    except RenderProblems as failure:
        raise _located(document, failure) from None


def _located(document: Document, failure: RenderProblems) -> SpecErrors:
    return SpecErrors([document.locate(problem) for problem in failure.problems])
