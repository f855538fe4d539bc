"""Writes `docs/reference`: a page on every field of the job file, and its JSON schema.

`python -m ddpk8s.spec.reference docs/reference` writes both anew; a test compares them.
"""

import json
import sys
from pathlib import Path as FilePath

from ddpk8s.spec.base import Section
from ddpk8s.spec.describe import default_of, example_of, section_below, sections, type_of
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.paths import Path, format_path
from ddpk8s.spec.schema import json_schema
from ddpk8s.spec.shape import SpecField, fields_of

_HEAD = """\
# The job file

Generated from the model by `python -m ddpk8s.spec.reference docs/reference`. `ddpk8s explain FIELD` prints
the same, `ddpk8s validate FILE` checks a file, and [trainingjob.schema.json](trainingjob.schema.json) is its
JSON schema.

A field that is absent, or has nothing after it, has its default. Durations are written as in Go (`90s`,
`1h30m`), sizes as in Kubernetes (`500m`, `64Gi`). The file is YAML 1.2 in UTF-8: one document, at most 1 MiB,
without anchors, aliases, merge keys and tags. Words that some readers of YAML take for booleans (`yes`,
`no`, `on`, `off`, `y`, `n`) and numbers with a leading zero need quotes.
"""


def reference_files() -> dict[str, str]:
    """Return the files of the reference: name and text."""
    page = "\n".join([_HEAD, *(_section(path, section) for path, section in sections(TrainingJob))])
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False)
    return {"spec.md": page, "trainingjob.schema.json": f"{schema}\n"}


def _title(path: Path) -> str:
    return format_path(path).replace("[0]", "[]") or "TrainingJob"


def _anchor(path: Path) -> str:
    return "".join(sign for sign in _title(path).lower() if sign.isalnum())


def _section(path: Path, section: type[Section]) -> str:
    rows = [_row((*path, key), field) for key, field in fields_of(section).items()]
    head = f'## <a id="{_anchor(path)}"></a>{_title(path)}\n\n{_one_line(section.__doc__ or "")}\n'
    return "\n".join([head, "| Field | Type | Default | |", "|---|---|---|---|", *rows, ""])


def _row(path: Path, field: SpecField) -> str:
    name = f"`{path[-1]}`"
    below = section_below(field)
    if below is not None:
        target = (*path, 0) if below[1] else path
        name = f"[{name}](#{_anchor(target)})"
    text = _one_line(field.info.description or "")
    example = example_of(field)
    if example is not None:
        text += f" Example: `{example}`"
    default = default_of(field)
    shown = "required" if field.info.is_required() else f"`{default}`" if default is not None else ""
    unit = f", {field.unit}" if field.unit else ""
    cells = [name, f"{type_of(field)}{unit}", shown, text]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def write_reference(directory: FilePath) -> None:
    """Write the files of the reference into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in reference_files().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_reference(FilePath(sys.argv[1]))
