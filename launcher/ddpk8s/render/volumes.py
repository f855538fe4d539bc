"""Volumes and mounts: those of the job, and those that every pod of ours has."""

from typing import Any

from ddpk8s.render import constants as c
from ddpk8s.render.context import Context
from ddpk8s.spec.resources import GIB
from ddpk8s.spec.storage import Ephemeral, Volume

Json = dict[str, Any]


def volumes(context: Context, plan: str, agent: str, code: str | None) -> list[Json]:
    """Return the volumes of a pod; the last three are names of ConfigMaps."""
    archive: list[Json] = [] if code is None else [
        {"name": f"{c.PREFIX}archive", "configMap": {"name": code}},
        {"name": f"{c.PREFIX}code", "emptyDir": {}},
    ]  # fmt: skip
    ours: list[Json] = [
        {"name": f"{c.PREFIX}agent", "configMap": {"name": agent}},
        *archive,
        {"name": f"{c.PREFIX}home", "emptyDir": {}},
        {"name": f"{c.PREFIX}plan", "configMap": {"name": plan}},
        {"name": f"{c.PREFIX}shm", "emptyDir": {"medium": "Memory", "sizeLimit": shared_memory(context)}},
        {"name": f"{c.PREFIX}state", "emptyDir": {}},
    ]
    theirs = [_volume(volume) for volume in _sorted(context)]
    return [*ours, *context.extras.volumes, *theirs]


def mounts(context: Context) -> list[Json]:
    """Return the mounts of our container."""
    code: list[Json] = []
    if context.code is not None:
        code.append({"name": f"{c.PREFIX}archive", "mountPath": c.ARCHIVE_DIRECTORY, "readOnly": True})
        code.append({"name": f"{c.PREFIX}code", "mountPath": c.CODE_DIRECTORY})
    ours: list[Json] = [
        {"name": f"{c.PREFIX}agent", "mountPath": c.AGENT_DIRECTORY, "readOnly": True},
        *code,
        {"name": f"{c.PREFIX}home", "mountPath": c.HOME_DIRECTORY},
        {"name": f"{c.PREFIX}plan", "mountPath": str(c.ETC), "readOnly": True},
        {"name": f"{c.PREFIX}shm", "mountPath": c.SHARED_MEMORY},
        {"name": f"{c.PREFIX}state", "mountPath": c.STATE_DIRECTORY},
    ]
    return [*ours, *context.extras.mounts, *(_mount(volume) for volume in _sorted(context))]


def shared_memory(context: Context) -> str:
    """Return the size of /dev/shm as a quantity, as written in the job or in the largest unit that is exact."""
    resources = context.spec.resources
    if resources.shared_memory is not None:
        return str(resources.shared_memory)
    size = resources.shared_memory_bytes
    for unit, name in ((GIB, "Gi"), (1024**2, "Mi"), (1024, "Ki")):
        if size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def _sorted(context: Context) -> list[Volume]:
    return sorted(context.spec.storage, key=lambda volume: volume.name)


def _mount(volume: Volume) -> Json:
    mount: Json = {"name": volume.name, "mountPath": volume.mount_path}
    if volume.read_only:
        mount["readOnly"] = True
    if volume.sub_path:
        mount["subPath"] = volume.sub_path
    return mount


def _volume(volume: Volume) -> Json:
    return {"name": volume.name, **_source(volume)}


def _source(volume: Volume) -> Json:
    """Return where the files of a volume are, in Kubernetes' words."""
    for make in (_claimed, _scratch, _of_node, _exported, _object, _driven):
        if (source := make(volume)) is not None:
            return source
    return {}


def _claimed(volume: Volume) -> Json | None:
    if volume.persistent_volume_claim is not None:
        claim = {"claimName": volume.persistent_volume_claim, **_read_only(volume)}
        return {"persistentVolumeClaim": claim}
    if volume.ephemeral is not None:
        return {"ephemeral": {"volumeClaimTemplate": {"spec": _claim(volume.ephemeral)}}}
    return None


def _scratch(volume: Volume) -> Json | None:
    if volume.empty_dir is None:
        return None
    given = {"medium": volume.empty_dir.medium, "sizeLimit": volume.empty_dir.size_limit}
    return {"emptyDir": {key: value for key, value in given.items() if value is not None}}


def _of_node(volume: Volume) -> Json | None:
    return None if volume.host_path is None else {"hostPath": {"path": volume.host_path, "type": "Directory"}}


def _exported(volume: Volume) -> Json | None:
    if volume.nfs is None:
        return None
    return {"nfs": {"server": volume.nfs.server, "path": volume.nfs.path, **_read_only(volume)}}


def _object(volume: Volume) -> Json | None:
    if volume.config_map is not None:
        return {"configMap": {"name": volume.config_map}}
    return None if volume.secret is None else {"secret": {"secretName": volume.secret}}


def _driven(volume: Volume) -> Json | None:
    csi = volume.csi
    if csi is None:
        return None
    source: Json = {"driver": csi.driver, **_read_only(volume)}
    if csi.volume_attributes:
        source["volumeAttributes"] = dict(sorted(csi.volume_attributes.items()))
    if csi.secret is not None:
        source["nodePublishSecretRef"] = {"name": csi.secret}
    return {"csi": source}


def _read_only(volume: Volume) -> Json:
    return {"readOnly": True} if volume.read_only else {}


def _claim(ephemeral: Ephemeral) -> Json:
    claim: Json = {
        "accessModes": [ephemeral.access_mode],
        "resources": {"requests": {"storage": ephemeral.storage}},
    }
    if ephemeral.storage_class_name is not None:
        claim["storageClassName"] = ephemeral.storage_class_name
    return claim
