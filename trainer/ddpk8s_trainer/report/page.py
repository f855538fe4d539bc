"""Put the page together."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from ddpk8s_trainer.errors import ConfigurationMistake
from ddpk8s_trainer.report import tables
from ddpk8s_trainer.report.confusion import confusion_of
from ddpk8s_trainer.report.figures import pictures
from ddpk8s_trainer.report.read import read_run
from ddpk8s_trainer.report.style import look
from ddpk8s_trainer.report.summary import notes, result, span, tiles, wall_time
from ddpk8s_trainer.report.timeline import timeline
from ddpk8s_trainer.report.words import duration, moment, number, percent

NAME = "report.html"


def write_report(job_directory: Path) -> Path:
    """Write `report.html` of a job directory, from whatever is there; return its path.

    Raises:
        ConfigurationMistake: it is no job directory, or the report cannot be written there.
    """
    path = job_directory / NAME
    text = render(job_directory)
    partial = path.with_name(f".partial-{NAME}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise ConfigurationMistake(f"cannot write {path}: {error.strerror}") from error
    return path


def render(job_directory: Path) -> str:
    """Return the page.

    Raises:
        ConfigurationMistake: it is no job directory.
    """
    run = read_run(job_directory)
    wall = wall_time(run)
    begin, end = span(run)
    with look():
        drawn = [picture for picture in (*pictures(run), timeline(run)) if picture]
    shown = run.best or (run.evaluations[-1] if run.evaluations else None)
    return _template().render(
        run=run,
        style=Markup((_HERE / "style.css").read_text(encoding="utf-8")),
        result=result(run),
        run_id=run.attempts[-1].start.get("runId", "") if run.attempts else "",
        begin=moment(begin),
        end=moment(end),
        tiles=tiles(run, wall),
        wall=wall.parts(),
        notes=list(notes(run)),
        pictures=drawn,
        confusion=confusion_of(shown),
        tables=tables,
        duration=duration,
        percent=percent,
        number=number,
    )


_HERE = Path(__file__).parent


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
