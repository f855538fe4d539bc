"""Evidence as JSON for the coordinator, small enough for one line of the protocol."""

import json
from dataclasses import asdict, fields, replace
from typing import Any

from ddpk8s_agent.evidence import Evidence, HungRank, RankEnd

LIMIT_BYTES = 32 * 1024
"""Half of a line: a HELLO brings the ledger along."""
_LONGEST_LINE = 400
# From all to nothing: lines of log and stack that each rank may keep, and characters of each text.
_STEPS = ((20, 4000), (10, 2000), (5, 1000), (2, 500), (0, 200))
_ESSENCE = ("step", "checkpoint", "model", "report")


def to_document(evidence: Evidence) -> dict[str, Any]:
    """Return evidence as a JSON object of at most `LIMIT_BYTES`; texts get shorter, then ranks are left out."""
    for lines, text in _STEPS:
        document = asdict(_shorten(evidence, lines, text))
        if _size(document) <= LIMIT_BYTES:
            return document
    document["finished"] = _essence(document["finished"])
    document["stopped"] = _essence(document["stopped"])
    kept = max(len(document["ends"]), len(document["hung"]))
    while kept and _size(document) > LIMIT_BYTES:
        kept //= 2
        # The first are nearest to the cause; whoever is left out must not look as if it had left with 0.
        out = {end["rank"] for end in document["ends"][kept:]}
        document["ranks"] = [rank for rank in document["ranks"] if rank not in out]
        document["ends"], document["hung"] = document["ends"][:kept], document["hung"][:kept]
    return document


def from_document(document: dict[str, Any]) -> Evidence:
    """Return evidence from its JSON object.

    Raises:
        TypeError, KeyError, ValueError: It is none.
    """
    known = {each.name for each in fields(Evidence)}
    content = {name: value for name, value in document.items() if name in known}
    return Evidence(
        **{
            **content,
            "ranks": tuple(content["ranks"]),
            "ends": tuple(RankEnd(**{**end, "log": tuple(end["log"])}) for end in content.get("ends", ())),
            "hung": tuple(
                HungRank(**{**rank, "stack": tuple(rank["stack"])}) for rank in content.get("hung", ())
            ),
            "lost": tuple((int(node), str(how)) for node, how in content.get("lost", ())),
        }
    )


def _shorten(evidence: Evidence, lines: int, text: int) -> Evidence:
    ends = tuple(
        replace(
            end,
            log=_lines(end.log, lines),
            exception=_text(end.exception, text),
            traceback=_text(end.traceback, text) if lines else None,
            error=end.error and {name: _text(value, text) for name, value in end.error.items()},
        )
        for end in evidence.ends
    )
    hung = tuple(
        replace(rank, stack=tuple(line[:_LONGEST_LINE] for line in rank.stack[: max(1, lines)]))
        for rank in evidence.hung
    )
    message = str(_text(evidence.launcher_message, text))
    return replace(evidence, ends=ends, hung=hung, launcher_message=message)


def _lines(log: tuple[str, ...], count: int) -> tuple[str, ...]:
    return tuple(line[:_LONGEST_LINE] for line in log[-count:]) if count else ()


def _text(value: Any, longest: int) -> Any:
    """Return a text without its middle, where a cause and its last effect stand at the ends."""
    if not isinstance(value, str) or len(value) <= longest:
        return value
    half = longest // 2
    return f"{value[:half]} ... {value[-half:]}"


def _essence(said: dict[str, Any]) -> dict[str, Any]:
    return {name: _text(said[name], 1000) for name in _ESSENCE if name in said}


def _size(document: dict[str, Any]) -> int:
    return len(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
