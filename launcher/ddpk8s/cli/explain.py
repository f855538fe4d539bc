"""`ddpk8s explain`: what a field of the job file means."""

import json
import shutil
import textwrap
from typing import Annotated, Any

import typer

from ddpk8s.cli.options import Output, OutputOption, emit


def explain(
    field: Annotated[
        str | None, typer.Argument(metavar="FIELD", help="As in spec.topology or training.batch")
    ] = None,
    recursive: Annotated[
        bool, typer.Option("--recursive", help="Print the names of all fields below, too")
    ] = False,
    schema: Annotated[bool, typer.Option("--json-schema", help="Print the JSON schema, for editors")] = False,
    output: OutputOption = Output.text,
) -> None:
    """Explain a field of the job file: type, default, unit, example, and the fields below it."""
    from ddpk8s.cli.fields import find_field

    found = find_field(field)
    if schema:
        emit(json.dumps(_schema(found), indent=2, ensure_ascii=False))
    elif output is Output.json:
        emit(json.dumps(found.to_document(), indent=2, ensure_ascii=False))
    else:
        emit("\n".join(_tree(found, "") if recursive else _page(found)))


def _schema(found: Any) -> Any:
    from ddpk8s.spec.schema import json_schema

    if found.section is None:
        raise typer.BadParameter(f"{found.name} holds no fields; name a section", param_hint="FIELD")
    return json_schema(found.section)


def _page(found: Any) -> list[str]:
    """Return the lines of the page on a field."""
    lines = [f"FIELD: {found.name} <{found.type}>", "", *_wrap(found.section_text or found.description, "  ")]
    lines += [f"  {label}: {text}" for label, text in found.details]
    if found.children:
        lines += ["", "FIELDS:"]
    for child in found.children:
        notes = {label: text for label, text in child.details if label != "example"}
        shown = "".join(
            f", {label if label == 'required' else f'{label} {text}'}" for label, text in notes.items()
        )
        lines += [f"  {child.key} <{child.type}>{shown}", *_wrap(child.description, "      ")]
    return lines


def _tree(found: Any, indent: str) -> list[str]:
    lines = [f"{indent}{found.key} <{found.type}>"]
    for child in found.children:
        lines += _tree(child, indent + "  ")
    return lines


def _wrap(text: str, indent: str) -> list[str]:
    width = min(100, shutil.get_terminal_size().columns)
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
