"""Is a directory a valid checkpoint?"""

from pathlib import Path

from ddpk8s_trainer.checkpoint import manifest as manifests
from ddpk8s_trainer.checkpoint.manifest import InvalidCheckpointError, Manifest
from ddpk8s_trainer.checkpoint.writing import hash_file


def check_structure(directory: Path, step: int) -> Manifest:
    """Check all that can be checked without reading the data: manifest, names, sizes.

    Raises:
        InvalidCheckpointError: With the reason.
    """
    if not directory.is_dir():
        raise InvalidCheckpointError("not a directory")
    manifest = Manifest.read(directory)
    if manifest.step != step:
        raise InvalidCheckpointError(f"{manifests.NAME} is of step {manifest.step}")
    for name, entry in manifest.files.items():
        try:
            size = (directory / name).stat().st_size
        except FileNotFoundError:
            raise InvalidCheckpointError(f"{name} is missing") from None
        except OSError as error:
            raise InvalidCheckpointError(f"{name} cannot be read: {error.strerror}") from None
        if size != entry.size:
            raise InvalidCheckpointError(f"{name} has {size} bytes instead of {entry.size}")
    # Hidden files are left by file managers and NFS, other strangers by whatever went wrong here.
    known = {manifests.NAME, *manifest.files}
    strangers = sorted(
        p.name for p in directory.iterdir() if p.name not in known and not p.name.startswith(".")
    )
    if strangers:
        raise InvalidCheckpointError(f"{strangers[0]} does not belong to it")
    return manifest


def check_content(directory: Path, manifest: Manifest, part: int, parts: int) -> None:
    """Check the hashes of every `parts`-th file, from the `part`-th on, so that ranks can share the work.

    Raises:
        InvalidCheckpointError: With the reason.
    """
    for name in sorted(manifest.files)[part::parts]:
        try:
            found = hash_file(directory / name)
        except FileNotFoundError:
            raise InvalidCheckpointError(f"{name} is missing as seen by rank {part}") from None
        except OSError as error:
            raise InvalidCheckpointError(f"{name} cannot be read: {error.strerror}") from None
        if found != manifest.files[name].hash:
            raise InvalidCheckpointError(f"{name} was changed: its hash does not match")
