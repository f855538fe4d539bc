"""`ddpk8s validate`: judge job files."""

import json
from typing import Annotated, Any

import typer

from ddpk8s.cli.options import Output, OutputOption, SetOption, default_file, emit, warn


def validate(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Job files; `-` reads standard input; by default job.yaml"),
    ] = None,
    file: Annotated[
        list[str] | None, typer.Option("-f", "--file", metavar="FILE", help="The same as FILE")
    ] = None,
    sets: SetOption = [],  # noqa: B006 - typer makes a new list
    output: OutputOption = Output.text,
) -> None:
    """Check job files; say every mistake at once, before anything starts.

    Exit code 0: all are valid (warnings on stderr). 2: mistakes, each with file, line, column and a hint.
    """
    names = [*(files or ()), *(file or ())]
    names = names or [default_file("a job file, as in `ddpk8s validate job.yaml`")]
    verdicts = [_judge(name, sets) for name in names]
    if output is Output.json:
        emit(json.dumps([report for report, _ in verdicts], indent=2, ensure_ascii=False))
    for report, text in verdicts:
        if text:
            warn(text)
        if output is Output.text and report["valid"]:
            emit(f"{report['file']}: valid: {report['summary']}")
    if not all(report["valid"] for report, _ in verdicts):
        raise typer.Exit(2)


def _judge(name: str, sets: list[str]) -> tuple[dict[str, Any], str]:
    """Return what there is to say about one file, for programs and for people."""
    from ddpk8s.errors import SpecError, SpecErrors
    from ddpk8s.render.reading import read_source
    from ddpk8s.spec.problems import LocatedProblem
    from ddpk8s.spec.summary import summarize

    warnings: list[LocatedProblem] = []
    try:
        source = read_source(name, sets, warnings.append)
        source.render()  # some mistakes show only in the objects
    except SpecErrors as failure:
        problems = [problem.to_document() for problem in failure.errors]
        return {"file": name, "valid": False, "problems": problems}, str(failure)
    except SpecError as failure:
        problem = {"place": name, "severity": "error", "message": failure.message, "hint": failure.hint}
        return {"file": name, "valid": False, "problems": [problem]}, str(failure)
    problems = [problem.to_document() for problem in warnings]
    report = {"file": name, "valid": True, "problems": problems, "summary": summarize(source.job)}
    return report, "\n".join(map(str, warnings))
