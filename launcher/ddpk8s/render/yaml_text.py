"""Objects as YAML that every reader reads alike, YAML 1.1 (kubectl, PyYAML) and 1.2.

PyYAML's own writer leaves `1e-3` without quotes, which kubectl takes for a number; ruamel's leaves `no`. So all
text is quoted that is not plainly a word, and text of several lines stands as a block.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_WORD = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(:[0-9]*[A-Za-z_/.][A-Za-z0-9_./-]*)*")
_READ_OTHERWISE = re.compile(r"(?i)(y|n|yes|no|on|off|true|false|null|nan|inf)")
_BLOCK_LINE = re.compile(r"[\x20-\x7e\u00a0-\u024f\u0370-\u1fff\u3000-\ud7ff]*")
_UNSAFE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
_INDENT = "  "


def to_yaml(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as YAML, each after a line `---`."""
    return "".join("---\n" + "\n".join(_mapping(manifest, "")) + "\n" for manifest in manifests)


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, item in value.items():
        yield from _entry(f"{indent}{_scalar(key)}:", item, indent, indent)


def _entry(head: str, item: Any, indent: str, list_indent: str) -> Iterator[str]:
    """Yield an item after its key."""
    if isinstance(item, dict) and item:
        yield head
        yield from _mapping(item, indent + _INDENT)
    elif isinstance(item, list) and item:
        yield head
        yield from _sequence(item, list_indent)
    elif isinstance(item, str) and _is_block(item):
        yield f"{head} {'|' if item.endswith(chr(10)) else '|-'}"
        for line in item.removesuffix("\n").split("\n"):
            yield f"{indent}{_INDENT}{line}" if line else ""
    else:
        yield f"{head} {_scalar(item)}"


def _sequence(value: list[Any], indent: str) -> Iterator[str]:
    for item in value:
        if isinstance(item, dict) and item:
            lines = _mapping(item, indent + _INDENT)
            yield f"{indent}- {next(lines)[len(indent) + 2 :]}"
            yield from lines
        elif isinstance(item, list) and item:
            lines = _sequence(item, indent + _INDENT)
            yield f"{indent}- {next(lines)[len(indent) + 2 :]}"
            yield from lines
        else:
            yield from _entry(f"{indent}-", item, indent, indent)


def _is_block(text: str) -> bool:
    """Return whether a text of several lines stands well, and unchanged, as a block."""
    if "\n" not in text or text.startswith((" ", "\n")) or text.endswith("\n\n"):
        return False
    return all(_BLOCK_LINE.fullmatch(line) for line in text.removesuffix("\n").split("\n"))


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        is_plain = _WORD.fullmatch(value) and not _READ_OTHERWISE.fullmatch(value)
        return value if is_plain else _quote(value)
    return json.dumps(value)


def _quote(text: str) -> str:
    """Return a text in double quotes; JSON's escapes are YAML's, but for characters above U+FFFF."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
