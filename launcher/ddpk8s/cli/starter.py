"""Starting files: a skeleton of a job, and above each of its fields what the model says about it."""

import re
import textwrap
from importlib.resources import files

from ddpk8s.spec.describe import default_of
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.paths import Path
from ddpk8s.spec.shape import SpecField, find

_HEAD = """\
# A training job.
{commands}
# Lines such as `#namespace: ml`, with no space after the `#`, are off; remove the `#` to use them.

"""
_COMMANDS = {
    "validate {name}": "all mistakes in this file at once",
    "run {name}": "train on this machine",
    "explain FIELD": "what a field means, as in `ddpk8s explain spec.topology`",
}
_LINE = re.compile(r"(?P<indent> *)(?P<off>#?)(?P<dash>- )?(?P<key>[A-Za-z_]+):(?P<rest>.*)")
_WIDTH = 100
_SPOKEN_FOR = {"apiVersion", "kind", "metadata", "spec"}


def read_template(name: str) -> str:
    """Return the text of a template file."""
    return files("ddpk8s.cli").joinpath("templates", name).read_text(encoding="utf-8")


def write_starter(template: str, name: str) -> str:
    """Return a starting file.

    Args:
        template: Name of the template, as in ``reviews``.
        name: What the file will be called, for the commands in its head.
    """
    lines = [_head(name)]
    stack: list[tuple[int, str]] = []
    said: set[Path] = set()
    for line in read_template(f"{template}.yaml").splitlines():
        match = _LINE.fullmatch(line)
        if line.startswith("# "):  # what the skeleton says of itself
            continue
        if match is None:
            lines.append(line)
            continue
        indent = len(match["indent"]) + len(match["dash"] or "")
        stack = [(column, key) for column, key in stack if column < indent]
        stack.append((indent, match["key"]))
        path = tuple(key for _, key in stack)
        if path not in said:
            said.add(path)
            lines += _comment(path, match["indent"])
        lines.append(line)
    return "\n".join([*lines, ""]).replace("spec:\n\n", "spec:\n", 1)


def _head(name: str) -> str:
    width = max(len(command.format(name=name)) for command in _COMMANDS)
    rows = [f"#   ddpk8s {command.format(name=name):{width}}  {text}" for command, text in _COMMANDS.items()]
    return _HEAD.format(commands="\n".join(rows)).rstrip("\n") + "\n"


def _comment(path: Path, indent: str) -> list[str]:
    """Return the comment above a field, with an empty line before a section of `spec`."""
    field = _find(path)
    gap = [""] if path == ("spec",) or (len(path) == 2 and path[0] == "spec") else []
    if not isinstance(field, SpecField) or path[-1] in _SPOKEN_FOR or len(field.info.description or "") < 16:
        return gap
    text = field.info.description or ""
    unit = f" [{field.unit}]" if field.unit else ""
    default = default_of(field)
    if default not in (None, "[]", "{}"):
        unit += f" Default: {default}"
    prefix = f"{indent}# "
    return [*gap, *textwrap.wrap(f"{text}{unit}", _WIDTH, initial_indent=prefix, subsequent_indent=prefix)]


def _find(path: Path) -> object:
    """Return the field at a path without indexes; entries of a list are looked at as the first one."""
    whole: Path = ()
    found: object = None
    for part in path:
        whole = (*whole, part)
        found = find(TrainingJob, whole)
        if isinstance(found, SpecField) and found.shape.kind == "list":
            whole = (*whole, 0)
    return found
