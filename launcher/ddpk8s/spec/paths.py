"""Places in the document: `spec.storage[0].mountPath` as text, a tuple of keys and indexes in code."""

import json
import re

Path = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SEGMENT = re.compile(
    r"""(?P<key>(?:[^.\[\]\\"']|\\.)+) | \[(?P<index>\d{1,6})\]
    | \[(?P<quoted>"(?:[^"\\]|\\.)*")\] | \['(?P<single>[^'\]]*)'\]""",
    re.VERBOSE,
)


def quote(text: str) -> str:
    """Return a text in double quotes on one line, with escapes for what a terminal would not show."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def format_path(path: Path) -> str:
    """Return a path as a user writes it; keys with dots or other signs stand in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{quote(part)}]"
    return text


def parse_path(text: str) -> Path:
    r"""Return the path written as `a.b[0].c`, `a.b.0.c`, `a["x.y"]` or `a.x\.y`.

    Raises:
        ValueError: empty, or not of that form.
    """
    path: list[str | int] = []
    position = 0
    while position < len(text):
        if path and text[position] == ".":
            position += 1
        match = _SEGMENT.match(text, position)
        if not match:
            raise ValueError(_refusal(text))
        if match["index"] is not None:
            path.append(int(match["index"]))
        elif match["key"] is not None:
            key = re.sub(r"\\(.)", r"\1", match["key"])
            path.append(int(key) if key.isascii() and key.isdigit() and len(key) <= 6 else key)
        else:
            path.append(match["single"] if match["quoted"] is None else _unquote(match["quoted"]))
        position = match.end()
    halves = any(isinstance(part, str) and _SURROGATE.search(part) for part in path)
    if not path or text.endswith(".") or halves:
        raise ValueError(_refusal(text))
    return tuple(path)


def _unquote(text: str) -> str:
    """Return the text that `quote` put in quotes; a backslash that is no escape stands for itself."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]


def _refusal(text: str) -> str:
    return f"{quote(text)} is no path; write for example spec.topology.nnodes or spec.storage[0].name"
