"""What looks like a secret: such values are never echoed, and do not belong in a job file."""

import re

from ddpk8s.spec.paths import Path

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_NAME = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|CREDENTIALS?)$"
    r"|(^|_)(API|ACCESS|PRIVATE|SECRET|AUTH|ENCRYPTION)_KEY(_ID)?$"
)
_TOKEN_OF_TEXT = re.compile(r"(PAD|EOS|BOS|UNK|MASK|SEP|CLS|SPECIAL|STOP|START|END|IMAGE)_TOKEN$")
_SECRET_VALUE = re.compile(
    r"\bhf_[A-Za-z0-9]{20,}|\bsk-[A-Za-z0-9_-]{20,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{20,}|\bxox[abpr]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}"
)
_FIELDS_OF_REFERENCES = {"storage", "secrets", "imagePullSecrets"}
"""Sections that name Secrets; a name is no secret."""


def is_secret_name(name: str) -> bool:
    """Return whether a key or environment variable is called like a secret: `HF_TOKEN`, `dbPassword`."""
    words = _WORD_START.sub("_", name).replace("-", "_").upper()
    return bool(_SECRET_NAME.search(words)) and not _TOKEN_OF_TEXT.search(words)


def is_secret_value(text: str) -> bool:
    """Return whether a text holds something in the form of a known kind of token."""
    return bool(_SECRET_VALUE.search(text))


def is_sensitive(path: Path, value: object) -> bool:
    """Return whether a value must not be echoed."""
    if isinstance(value, str) and is_secret_value(value):
        return True
    if len(path) > 1 and path[0] == "spec" and path[1] in _FIELDS_OF_REFERENCES:
        return False
    return any(isinstance(part, str) and is_secret_name(part) for part in path)
