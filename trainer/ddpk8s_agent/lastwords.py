"""What a rank said last of its own end: its exception, and the words that tell the cause."""

import re

from ddpk8s_agent.evidence import RankEnd

TRACEBACK = "Traceback (most recent call last):"
_CHAINS = ("The above exception was the direct cause", "During handling of the above exception")
_EXCEPTION_LINE = re.compile(
    r"(\[rank\d+\]: )?([A-Za-z_]\w*\.)*[A-Z]\w*(Error|Exception|Interrupt|Exit)(: .*)?"
)


def final_exception(lines: tuple[str, ...]) -> str | None:
    """Return `Type: message` of the last traceback in a log, or None."""
    for start in range(len(lines) - 1, -1, -1):
        if TRACEBACK in lines[start]:
            indent = lines[start].index(TRACEBACK)
            after = (line[indent:] for line in lines[start + 1 :])
            return next((line.strip() for line in after if line and not line[0].isspace()), None)
    return None


def own_words(end: RankEnd) -> str | None:
    """Return the error of a rank in its own words; any other line of its log may have nothing to do with it."""
    if end.error:
        return f"{end.error.get('reason')}: {end.error.get('message')}"
    exception = end.exception or final_exception(end.log)
    if exception is None:  # an error of syntax in the script itself comes without a traceback
        exception = next((line for line in reversed(end.log) if _EXCEPTION_LINE.fullmatch(line)), None)
    return re.sub(r"^\[rank\d+\]: ", "", exception) if exception else None


def cause_text(end: RankEnd) -> str:
    """Return the words that tell the cause: the last traceback with its causes, else the last lines."""
    parts = [str(part) for part in (end.exception, end.traceback, (end.error or {}).get("message")) if part]
    if parts:
        return "\n".join(parts)
    starts = [number for number, line in enumerate(end.log) if TRACEBACK in line]
    if not starts:
        return "\n".join(end.log)
    start = starts.pop()
    while starts and any(chain in line for line in end.log[starts[-1] : start] for chain in _CHAINS):
        start = starts.pop()
    return "\n".join(end.log[start:])
