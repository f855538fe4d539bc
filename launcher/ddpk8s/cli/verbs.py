"""The list of verbs, and a command group that imports a verb's module only when that verb is used."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

VERBS = {
    "init": "Write a commented job file to start from",
    "validate": "Check job files; say every mistake at once, before anything starts",
    "render": "Print the objects that a cluster would get",
    "diff": "Compare the objects of two job files",
    "explain": "Explain a field of the job file",
    "run": "Train on this machine",
    "version": "Print the version",
}
"""Verb to its line in `ddpk8s --help`; `ddpk8s.cli.VERB` has a function of the verb's name."""


class VerbGroup(TyperGroup):
    """A group whose commands are the functions in `ddpk8s.cli.VERB`; `--help` imports none of them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(VERBS)  # type: ignore[assignment]  # names alone, for did-you-mean

    def get_command(self, _context: Any, cmd_name: str) -> Any:
        """Return the command of a verb, or None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        app = _new_app()
        app.command(cmd_name)(getattr(import_module(f"ddpk8s.cli.{cmd_name}"), cmd_name))
        return get_command(app)

    def format_commands(self, _context: Any, formatter: Any) -> None:
        """Write the list of verbs."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def make_command() -> Any:
    """Return the whole command line, ready to be called."""
    app = _new_app(cls=VerbGroup, no_args_is_help=True)

    @app.callback()
    def ddpk8s(
        _version: Annotated[
            bool, typer.Option("--version", help="Print the version", is_eager=True, callback=_print_version)
        ] = False,
    ) -> None:
        """Train with PyTorch: one file, from two processes on a laptop to a GPU cluster."""

    return get_command(app)


def _print_version(asked: bool) -> None:
    if asked:
        import_module("ddpk8s.cli.version").version()
        raise typer.Exit


def _new_app(**settings: Any) -> typer.Typer:
    """Return an app with plain help and plain errors: rich takes half of the time that `--help` may take."""
    return typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        **settings,
    )
