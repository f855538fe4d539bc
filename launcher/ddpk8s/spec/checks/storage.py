"""Volumes: one source each, no two alike, and the paths that the training uses lie in them."""

import posixpath
import re
from collections.abc import Iterator

from ddpk8s.spec.job import JobSpec
from ddpk8s.spec.problems import Problem, error, pod_warning
from ddpk8s.spec.storage import SOURCES, Volume
from ddpk8s.spec.training import Training
from ddpk8s.spec.values import show

_OWNED_PATHS = ("/proc", "/sys", "/dev", "/etc/ddpk8s", "/opt/ddpk8s")
_OWNED_NAME = "ddpk8s-"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def check_storage(spec: JobSpec) -> Iterator[Problem]:
    """Yield problems of `storage`, and of paths that should lie in a volume."""
    for i, volume in enumerate(spec.storage):
        yield from _check_volume(f"spec.storage[{i}]", volume)
    for name in ("name", "mountPath"):
        yield from _check_unique(spec, name)
    if spec.training is not None:
        yield from _check_inputs(spec, spec.training)
        yield from _check_checkpoint_directory(spec, spec.training)


def _check_volume(field: str, volume: Volume) -> Iterator[Problem]:
    keys = {
        name: "".join(word.title() if i else word for i, word in enumerate(name.split("_")))
        for name in SOURCES
    }
    given = [keys[name] for name in SOURCES if getattr(volume, name) is not None]
    if not given:
        hint = f"add one of {', '.join(keys.values())}; scratch space is `emptyDir: {{}}`"
        yield error(
            field,
            "has no source, so there is nothing to mount",
            hint,
            [f"{field}.{key}" for key in keys.values()],
        )
    elif len(given) > 1:
        yield error(
            field, f"has {len(given)} sources ({', '.join(given)}), but must have one", "remove the others"
        )
    if volume.name.startswith(_OWNED_NAME):
        yield error(
            f"{field}.name",
            f"is {show(volume.name)}, but names with {_OWNED_NAME} are the launcher's",
            "rename it",
        )
    path = volume.mount_path
    if path == "/" or any(path == owned or path.startswith(f"{owned}/") for owned in _OWNED_PATHS):
        hint = (
            "set spec.resources.sharedMemory"
            if path.startswith("/dev/shm")
            else "choose another path, as in /data"
        )
        yield error(f"{field}.mountPath", f"is {show(path)}, where nothing may be mounted", hint)
    if volume.sub_path is not None and (
        volume.sub_path.startswith("/") or ".." in volume.sub_path.split("/")
    ):
        hint = "write it without `/` in front and without `..`"
        yield error(
            f"{field}.subPath", f"is {show(volume.sub_path)}, but must be a path inside the volume", hint
        )


def _check_unique(spec: JobSpec, key: str) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for i, volume in enumerate(spec.storage):
        value = volume.name if key == "name" else volume.mount_path
        if value in seen:
            other = f"spec.storage[{seen[value]}].{key}"
            yield error(
                f"spec.storage[{i}].{key}", f"is {show(value)}, as is {other}", "change one of them", [other]
            )
        seen.setdefault(value, i)


def _check_inputs(spec: JobSpec, training: Training) -> Iterator[Problem]:
    model, data = training.model, training.data
    for field, path in (
        ("data.train", data.train),
        ("data.validation", data.validation),
        ("model.path", model.path),
        ("model.tokenizer", model.tokenizer),
    ):
        if path is None or (field.startswith("model.") and _HUB_ID.fullmatch(path)):
            continue
        name = f"spec.training.{field}"
        if not path.startswith("/"):
            hint = (
                "write an absolute path in a volume's mountPath; `ddpk8s run` maps it to .ddpk8s/volumes/NAME"
            )
            yield pod_warning(
                name, f"is {show(path)}, a relative path, which depends on where processes start", hint
            )
        elif spec.volume_of(path) is None:
            hint = "mount a volume in spec.storage, unless the image holds it"
            yield pod_warning(
                name, f"is {show(path)}, which lies in no volume of spec.storage", hint, ["spec.storage"]
            )
    cache = training.data.cache_directory
    if cache is not None and cache.startswith("/"):
        yield from _check_writable(spec, "spec.training.data.cacheDirectory", cache)


def _check_checkpoint_directory(spec: JobSpec, training: Training) -> Iterator[Problem]:
    field, path = "spec.training.checkpoint.directory", posixpath.normpath(training.checkpoint.directory)
    unwritable = list(_check_writable(spec, field, path))
    yield from unwritable
    volume = spec.volume_of(path)
    if unwritable or (volume is not None and volume.outlives_pod):
        return
    several, restarts = spec.topology.nnodes > 1, spec.failure_policy.max_restarts > 0
    if not several and not restarts:
        return
    where = "in no volume of spec.storage"
    if volume is not None:
        i, key = spec.storage.index(volume), (volume.source or "").split("_")
        where = f"in spec.storage[{i}], a volume of type {key[0] + ''.join(word.title() for word in key[1:])}"
    why = (
        "each node has files of its own there"
        if several
        else "a pod that is replaced starts from the beginning"
    )
    hint = "use a volume with persistentVolumeClaim or nfs; `ddpk8s run` is not concerned"
    yield pod_warning(
        field, f"is {show(path)}, {where}: {why}", hint, ["spec.storage", "spec.topology.nnodes"]
    )


def _check_writable(spec: JobSpec, field: str, path: str) -> Iterator[Problem]:
    volume = spec.volume_of(path)
    if volume is None or volume.writable:
        return
    i = spec.storage.index(volume)
    why = (
        f"spec.storage[{i}].readOnly is true"
        if volume.read_only
        else f"spec.storage[{i}] cannot be written to"
    )
    yield error(field, f"is {show(path)} but {why}", "write to another volume", ["spec.storage"])
