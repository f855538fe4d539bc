"""What the fields of a message must be, so that the machines meet nothing that they cannot take.

Fields that are not named here may be anything; the machines only compare them.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from ddpk8s_agent.gang.ledger import from_document
from ddpk8s_agent.gang.messages import BadLineError, Message

_LONGEST_NAME = 200
_LONGEST_TEXT = 4000
_Check = Callable[[Any], bool]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _number(value: Any) -> bool:
    return (_whole(value) or isinstance(value, float)) and math.isfinite(value)


def _name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME and value.isprintable()


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _ledger(value: Any) -> bool:
    try:
        from_document(value)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return False
    return True


def _silent(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _name(value[0]) and _number(value[1])


def _rank(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 4:
        return False
    rank, step, age, ever = value
    return _whole(rank) and (step is None or _whole(step)) and _number(age) and isinstance(ever, bool)


def _ranks(value: Any) -> bool:
    return isinstance(value, list) and all(map(_rank, value))


def _or_none(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


_EVERYWHERE: Mapping[str, _Check] = {"inc": _name, "rdzv": _name}
_FIELDS: Mapping[str, Mapping[str, _Check]] = {
    "HELLO": {
        **dict.fromkeys(("nnodes", "nproc", "prepared", "of"), _whole),
        **dict.fromkeys(("step", "left"), _or_none(_whole)),
        **dict.fromkeys(("token", "spec", "state"), _name),
        **{"silent": _or_none(_silent), "ledger": _ledger, "evidence": _object},
    },
    "HB": {"state": _name, "ranks": _ranks, "phase": _name, "step": _or_none(_whole)},
    "NOTREADY": {"why": _text, "hint": _text},
    "DONE": {"evidence": _object},
    "ACK": {"of": _whole},
    "WELCOME": {"ledger": _ledger},
    "WAITING": {"why": _text, "ledger": _ledger},
    "REJECT": {"why": _text},
    "PREPARE": {"port": _whole, "mark": _name},
    "START": {"port": _whole, "ledger": _ledger},
    "END": {"why": _name, "grace": _number},
    "VERDICT": {
        **{"verdict": _object, "ledger": _ledger, "exit": _or_none(_whole)},
        **{"pause": _number, "restarts": _whole},
    },
    "EXIT": {"code": _whole, "word": _or_none(_object)},
}
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "HELLO": ("ledger", "inc"),
    "WELCOME": ("ledger", "inc"),
    "PREPARE": ("rdzv", "port"),
    "START": ("rdzv", "port", "ledger"),
    "END": ("why", "grace"),
    "VERDICT": ("verdict", "ledger", "pause", "restarts"),
    "EXIT": ("code",),
}


def check(message: Message) -> None:
    """Check the fields of a message.

    Raises:
        BadLineError: One is missing, or is not what it must be.
    """
    kind = message["type"]
    for name in _NEEDED.get(kind, ()):
        if name not in message:
            raise BadLineError(f"a {kind} without {name}")
    for name, fits in {**_EVERYWHERE, **_FIELDS.get(kind, {})}.items():
        if name in message and not fits(message[name]):
            raise BadLineError(f"a {kind} with a wrong {name}")
