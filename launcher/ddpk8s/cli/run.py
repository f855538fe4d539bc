"""`ddpk8s run`: train on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from ddpk8s.cli.options import FileArgument, FileOption, SetOption, one_file, warn

MAX_NODES = 64
"""Agents that one machine is asked to run; each of them starts Python, torchrun and its processes."""


def run(  # noqa: PLR0913, PLR0917 - the options of the verb
    file: FileArgument = None,
    file_option: FileOption = None,
    sets: SetOption = [],  # noqa: B006 - typer makes a new list
    nnodes: Annotated[
        int,
        typer.Option(
            "--nnodes",
            min=1,
            max=MAX_NODES,
            metavar="N",
            help="Nodes, each with an agent of its own, as pods have; the job's own number is for a cluster",
        ),
    ] = 1,
    nproc: Annotated[
        int | None,
        typer.Option(
            "--nproc",
            min=1,
            metavar="P",
            help="Processes of each node; by default as many as the job wants and the machine has for each",
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start a new run, whatever was before")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run before, even if the job has changed since")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Show only errors and the result")] = False,
) -> None:
    """Train on this machine, as pods would: the same file, agent and trainer, on one node.

    With --nnodes N there are N agents here, one for each pod that a cluster would have: they wait for each
    other, fail and start again together, and one that is killed is replaced. The global batch stays.

    Volumes are directories below .ddpk8s/volumes. A run that did not finish continues from its newest
    checkpoint; Ctrl-C saves one first.

    Exit code 0: trained. 1: training failed and its restarts are spent. 2: the job file or the command line is
    wrong, or the job is running already. 78: a mistake in data, model, code or settings that only the run could
    find. 143: stopped. 70: a bug of ours.
    """
    from ddpk8s.local.run import LocalRun, Options
    from ddpk8s.local.substitute import Wish
    from ddpk8s.spec.load import load_job
    from ddpk8s.spec.problems import LocatedProblem

    name = one_file("run", file, file_option, quiet=quiet)
    if fresh and resume:
        raise typer.BadParameter("--fresh and --resume exclude each other")

    def tell(problem: LocatedProblem) -> None:
        if not (quiet or problem.problem.pods_only):
            warn(problem)

    job = load_job(name, sets, warn=tell)
    base = Path() if name == "-" else Path(name).parent
    raise typer.Exit(LocalRun(job, base, Options(Wish(nnodes, nproc), fresh, resume, quiet)).run())
