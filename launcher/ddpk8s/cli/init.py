"""`ddpk8s init`: a commented job file to start from."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ddpk8s.cli.options import emit, warn


class Template(StrEnum):
    """What the job is about."""

    reviews = "reviews"
    own_script = "own-script"


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file; `-` prints it")] = Path("job.yaml"),
    template: Annotated[
        Template,
        typer.Option(
            "-t", "--template", help="The bundled trainer on labelled texts, or a script of your own"
        ),
    ] = Template.reviews,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there")] = False,
) -> None:
    """Write a commented job file to start from; it is valid as it stands.

    With the template `own-script`, a small `train.py` is written beside it if there is none.
    """
    from ddpk8s.cli.starter import read_template, write_starter

    text = write_starter(template.value, "job.yaml" if str(file) == "-" else str(file))
    if str(file) == "-":
        emit(text.rstrip("\n"))
        return
    _write(file, text, force=force)
    warn(f"wrote {file}")
    script = file.parent / "train.py"
    if template is Template.own_script and not script.exists():
        _write(script, read_template("train.py.txt"), force=False)
        warn(f"wrote {script}")
    if template is Template.reviews:
        warn(
            "data for `ddpk8s run`: put train.jsonl and validation.jsonl into .ddpk8s/volumes/data/reviews, "
            'one JSON object a line, {"text": ..., "label": ...}'
        )
    warn(f"next: ddpk8s validate {file}")


def _write(file: Path, text: str, *, force: bool) -> None:
    """Write a file that is not there yet, unless forced.

    Raises:
        SpecError: it is there, or cannot be written.
    """
    from ddpk8s.errors import SpecError

    try:
        with file.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise SpecError(
            f"{file}: is there already", "choose another name, or overwrite it by --force"
        ) from None
    except OSError as failure:
        raise SpecError(f"{file}: cannot be written: {(failure.strerror or str(failure)).lower()}") from None
