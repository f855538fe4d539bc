"""`ddpk8s diff`: compare the objects of two job files."""

import difflib
from typing import Annotated

import typer

from ddpk8s.cli.options import SetOption, emit
from ddpk8s.cli.render import BackendOption, read

EXIT_DIFFERENT = 1
_RUN = "run"


def diff(
    old: Annotated[str, typer.Argument(metavar="A", help="Job file")],
    new: Annotated[str, typer.Argument(metavar="B", help="Job file; `-` reads standard input")],
    sets: SetOption = [],  # noqa: B006 - typer makes a new list
    backend: BackendOption = None,
) -> None:
    """Compare the objects of two job files, as `render` would print them for one and the same run.

    With --set, and with --backend, both files are changed alike.

    Exit code 0: they are the same. 1: they differ. 2: mistakes in one of the files.
    """
    before, after = (_lines(name, sets, backend) for name in (old, new))
    changes = list(difflib.unified_diff(before, after, old, new, lineterm=""))
    if changes:
        emit("\n".join(changes))
        raise typer.Exit(EXIT_DIFFERENT)


def _lines(name: str, sets: list[str], backend: str | None) -> list[str]:
    """Return the objects of a job file as lines of YAML; archives by their hash, which their names carry."""
    from ddpk8s.render.yaml_text import to_yaml

    objects = read(name, sets, backend, quiet=True).render(_RUN).objects
    shown = [
        {**each, "binaryData": dict.fromkeys(each["binaryData"], "(archive)")}
        if "binaryData" in each
        else each
        for each in objects
    ]
    return to_yaml(shown).splitlines()
