"""manifest.json: what a complete checkpoint consists of. It is written last."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import xxhash

from ddpk8s_trainer.checkpoint.writing import FileEntry

NAME = "manifest.json"
FORMAT = "ddpk8s-checkpoint"
VERSION = 1


class InvalidCheckpointError(Exception):
    """A directory is not a valid checkpoint; the text says why."""


@dataclass(frozen=True)
class Manifest:
    """Content of manifest.json; `metadata` is what the trainer gave to `save`."""

    step: int
    run_id: str
    world_size: int
    best: bool
    metadata: dict[str, Any]
    files: dict[str, FileEntry]
    torch_version: str = torch.__version__

    @property
    def size(self) -> int:
        """Bytes of all files but the manifest."""
        return sum(file.size for file in self.files.values())

    def encode(self) -> bytes:
        """The file's content."""
        content = {
            "format": FORMAT,
            "formatVersion": VERSION,
            "step": self.step,
            "runId": self.run_id,
            "worldSize": self.world_size,
            "best": self.best,
            "torch": self.torch_version,
            "metadata": self.metadata,
            "files": {name: {"size": f.size, "xxh3_128": f.hash} for name, f in sorted(self.files.items())},
        }
        content["checksum"] = _checksum(content)
        return (json.dumps(content, indent=1) + "\n").encode()

    @classmethod
    def read(cls, directory: Path) -> "Manifest":
        """Read a checkpoint's manifest.

        Raises:
            InvalidCheckpointError: There is none, or it does not say what a manifest says.
        """
        try:
            content = json.loads((directory / NAME).read_bytes())
        except FileNotFoundError:
            raise InvalidCheckpointError(f"{NAME} is missing") from None
        except ValueError as error:
            raise InvalidCheckpointError(f"{NAME} is not JSON: {error}") from None
        except OSError as error:
            raise InvalidCheckpointError(f"{NAME} cannot be read: {error.strerror}") from None
        return cls._decode(content)

    @classmethod
    def _decode(cls, content: Any) -> "Manifest":
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InvalidCheckpointError(f"{NAME} is not a manifest of a ddpk8s checkpoint")
        if content.get("formatVersion") != VERSION:
            raise InvalidCheckpointError(
                f"format version {content.get('formatVersion')} is not known (this version reads {VERSION})"
            )
        if content.pop("checksum", None) != _checksum(content):
            raise InvalidCheckpointError(f"{NAME} was changed: its checksum does not match")
        try:
            return cls(
                step=content["step"],
                run_id=content["runId"],
                world_size=content["worldSize"],
                best=content["best"],
                metadata=content["metadata"],
                files={name: FileEntry(f["size"], f["xxh3_128"]) for name, f in content["files"].items()},
                torch_version=content["torch"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidCheckpointError(f"{NAME} lacks {error}") from None


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return xxhash.xxh3_128_hexdigest(text.encode())
