"""Files in a zip archive that is the same wherever it is made: sorted, with fixed dates and known modes."""

import hashlib
import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass

_DATE = (1980, 1, 1, 0, 0, 0)  # the oldest that a zip archive can say
_REGULAR_FILE = 0o100000
_UNIX = 3


@dataclass(frozen=True, slots=True, order=True)
class File:
    """A file: its path with `/`, whether it may be executed, and its bytes."""

    path: str
    executable: bool
    content: bytes


def digest(files: Iterable[File], length: int = 10) -> str:
    """Return a hash of paths, modes and contents. Not of the archive: compressors differ."""
    total = hashlib.sha256()
    for file in sorted(files):
        mode = "x" if file.executable else "-"
        total.update(f"{len(file.path)} {file.path} {mode} {len(file.content)}\n".encode())
        total.update(file.content)
    return total.hexdigest()[:length]


def pack(files: Iterable[File]) -> bytes:
    """Return a zip archive of the files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(files):
            info = zipfile.ZipInfo(file.path, _DATE)
            info.create_system = _UNIX
            info.external_attr = (_REGULAR_FILE | (0o755 if file.executable else 0o644)) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.content)
    return buffer.getvalue()
