"""The last word: one JSON object of at most 4 KiB, which Kubernetes shows as the termination message."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

LIMIT_BYTES = 4096


def encode(content: dict[str, Any]) -> bytes:
    """Return the object as JSON, its `message` cut where it would be too long."""
    data = _json(content)
    message = str(content.get("message", ""))
    while len(data) > LIMIT_BYTES and message:
        # Cut by what is too much, at least: escapes and multi-byte characters make it a few rounds.
        message = message[: max(0, min(len(message) - 1, len(message) - (len(data) - LIMIT_BYTES) // 4))]
        data = _json({**content, "message": message + "..."})
    return data


def write(path: str | None, content: dict[str, Any]) -> None:
    """Write the object; best effort, for nothing may change an exit code now.

    Kubernetes mounts the file itself, so it cannot be replaced there; elsewhere nobody ever sees half of it.
    """
    if not path:
        return
    data = encode(content)
    partial = Path(f"{path}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError:
        with suppress(OSError):
            partial.unlink()
        with suppress(OSError):
            Path(path).write_bytes(data)


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode("utf-8", errors="replace")
