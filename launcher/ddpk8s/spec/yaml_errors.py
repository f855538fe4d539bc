"""What the YAML scanner and parser stumble over, in words for people."""

from typing import Any

_INVALID = "this is no valid YAML"
_INDENT = "indent all fields of one section alike, and put a space after `:` and `-`"


_BRACKET = (
    f"{_INVALID}: in this bracket a comma or the closing bracket is missing",
    "close the bracket, and put a comma between entries",
)
_QUOTE = (f"{_INVALID}: this quote is not closed", "close it at the end of the text")
_TAB = ("a tab indents this line, and YAML allows only spaces", "replace tabs by spaces")
# What the scanner says, and what we say for it.
_AT_PROBLEM = {
    "mapping values are not allowed": (
        f"{_INVALID}: a `:` cannot stand here",
        f"{_INDENT}; quote text that holds `: `",
    ),
    "cannot start any token": (
        f"{_INVALID}: text cannot begin with this character",
        "put the text in quotes",
    ),
    "expected <block end>": (
        f"{_INVALID}: this line is not indented like the section it belongs to",
        _INDENT,
    ),
    "escape": (
        f"{_INVALID}: no such escape in double quotes",
        "write a backslash twice, or use single quotes",
    ),
    "could not find expected ':'": (
        f"{_INVALID}: a `key: value` is expected here",
        "put a `:` and a space after the key",
    ),
}


def explain_failure(failure: Any, text: str) -> tuple[Any, str, str | None]:
    """Return mark, message and hint for a `MarkedYAMLError`; the mark is where a person would look first."""
    problem, context = str(failure.problem or ""), str(failure.context or "")
    mark, start = failure.problem_mark or failure.context_mark, failure.context_mark
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\\t" in problem or "\t" in line[: len(line) - len(line.lstrip())]:
        return mark, *_TAB
    if "quoted scalar" in context and ("end of stream" in problem or "document separator" in problem):
        return start, *_QUOTE
    if "flow sequence" in context or "flow mapping" in context:
        return start, *_BRACKET
    if "found '<stream end>'" in problem:
        return mark, f"{_INVALID}: the file ends within a value", _BRACKET[1]
    for words, explained in _AT_PROBLEM.items():
        if words in problem:
            return start if "':'" in words else mark, *explained
    return mark, f"{_INVALID}: {(problem or context).splitlines()[0]}", None
