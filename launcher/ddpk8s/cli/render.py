"""`ddpk8s render`: print the objects that a cluster would get."""

import gc
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ddpk8s.cli.options import FileArgument, FileOption, SetOption, emit, one_file, warn

if TYPE_CHECKING:
    from ddpk8s.render.reading import Source


class Form(StrEnum):
    """Form of the objects on stdout."""

    yaml = "yaml"
    json = "json"
    name = "name"


BackendOption = Annotated[
    str | None, typer.Option("--backend", metavar="BACKEND", help="Instead of the file's spec.backend")
]
RunOption = Annotated[
    str | None,
    typer.Option("--run-id", metavar="ID", help="Identity of the run; by default it follows from the job"),
]
VersionOption = Annotated[
    str | None,
    typer.Option(
        "--kubernetes-version", metavar="X.Y", help="Whose schemas judge the objects; by default the newest"
    ),
]


def render(  # noqa: PLR0913, PLR0917 - the options of the verb
    file: FileArgument = None,
    file_option: FileOption = None,
    sets: SetOption = [],  # noqa: B006 - typer makes a new list
    backend: BackendOption = None,
    run_id: RunOption = None,
    version: VersionOption = None,
    output: Annotated[Form, typer.Option("-o", "--output", help="Form of the objects")] = Form.yaml,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print what the fabric profile adds, with its sources, instead")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No summary on stderr")] = False,
) -> None:
    """Print the objects that a cluster would get, the same bytes every time; a summary goes to stderr.

    Exit code 0: printed. 2: mistakes, each with file, line, column and a hint.
    """
    gc.disable()  # collecting takes a quarter of the time, and nothing grows in a process this short

    from ddpk8s.render.summary import summary
    from ddpk8s.render.yaml_text import to_yaml

    name = one_file("render", file, file_option, quiet=quiet)
    source = read(name, sets, backend, quiet=quiet)
    rendering = source.render(run_id, known_version(version))
    if explain:
        emit(_explain(source))
        return
    if not quiet:
        warn("\n".join(summary(rendering)))
    if output is Form.yaml:
        emit(to_yaml(rendering.objects).removesuffix("\n"))
    elif output is Form.json:
        items = {"apiVersion": "v1", "kind": "List", "items": rendering.objects}
        emit(json.dumps(items, indent=2, ensure_ascii=False))
    else:
        emit("\n".join(f"{each['kind'].lower()}/{each['metadata']['name']}" for each in rendering.objects))


def read(name: str, sets: list[str], backend: str | None, *, quiet: bool = False) -> "Source":
    """Return a job file with its code and profile; warnings go to stderr.

    Raises:
        SpecErrors: mistakes in it.
    """
    from ddpk8s.render.reading import read_source

    overrides = [*sets, *([] if backend is None else [f"spec.backend={backend}"])]
    return read_source(name, overrides, None if quiet else warn)


def known_version(version: str | None) -> str:
    """Return the version of Kubernetes whose schemas judge.

    Raises:
        BadParameter: there are no schemas for it.
    """
    from ddpk8s.render.schema import NEWEST, VERSIONS

    if version is None:
        return NEWEST
    if version.removeprefix("v") not in VERSIONS:
        raise typer.BadParameter(
            f"{version} is none of {', '.join(VERSIONS)}", param_hint="--kubernetes-version"
        )
    return version.removeprefix("v")


def _explain(source: "Source") -> str:
    """Return what the profile adds, a line each: what is set, and where that was read."""
    from ddpk8s.fabric import explain
    from ddpk8s.render.network import profile_of

    profile = profile_of(source.job, source.directory)
    rows = explain(profile, source.job)
    lines = [f"{what}: {value}\n    {origin}" for what, value, origin in rows]
    return "\n".join([f"{profile.name}: {profile.description}", *lines])
