"""Did-you-mean: for keys that are not in the model, and for words that are not among a field's choices."""

from collections.abc import Iterable
from difflib import get_close_matches

from ddpk8s.spec.base import Section
from ddpk8s.spec.paths import Path, format_path
from ddpk8s.spec.shape import fields_of, shape_at, walk

# What the same thing is called elsewhere: torchrun, Hugging Face, DeepSpeed, Kubernetes, other launchers.
_OTHER_NAMES = {
    "spec.topology.nnodes": "nodes num_nodes replicas parallelism completions workers num_machines",
    "spec.topology.nprocPerNode": "nproc processes num_processes procs_per_node processes_per_node",
    "spec.resources.gpu": "gpus gpu_count num_gpus gpus_per_node nvidia.com/gpu",
    "spec.resources.cpu": "cpus cores",
    "spec.resources.memory": "mem ram",
    "spec.resources.sharedMemory": "shm shm_size shmsize",
    "spec.failurePolicy.maxRestarts": "backoff_limit restarts max_retries retries",
    "spec.failurePolicy.gracePeriod": "termination_grace_period_seconds shutdown_timeout",
    "spec.failurePolicy.ttlAfterFinished": "ttl_seconds_after_finished ttl",
    "spec.failurePolicy.activeDeadline": "active_deadline_seconds timeout max_duration",
    "spec.scheduling.priorityClass": "priority_class_name priority",
    "spec.storage": "volumes volume_mounts mounts",
    "spec.secrets": "env_from",
    "spec.entrypoint.script": "command",
    "spec.training.batch.globalBatch": "batch_size global_batch_size train_batch_size",
    "spec.training.batch.microBatch": "per_device_train_batch_size micro_batch_size",
    "spec.training.batch.gradientAccumulationSteps": "accumulation_steps gradient_accumulation",
    "spec.training.data.maxLength": "max_seq_length max_seq_len sequence_length max_position",
    "spec.training.data.validation": "eval valid dev test",
    "spec.training.epochs": "num_train_epochs num_epochs",
    "spec.training.optimizer.learningRate": "lr",
    "spec.training.precision.type": "dtype mixed_precision",
    "spec.training.model.path": "model_name model_name_or_path pretrained",
    "spec.training.checkpoint.everySteps": "save_steps save_interval",
    "spec.training.checkpoint.directory": "output_dir save_dir checkpoint_dir",
    "spec.training.checkpoint.keep": "save_total_limit",
    "spec.training.evaluation.everySteps": "eval_steps eval_interval",
    "spec.training.metrics.logEverySteps": "logging_steps log_interval",
    "mountPath": "path mount",
    "persistentVolumeClaim": "pvc claim claim_name",
}
_OTHER_WORDS = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32",
    "job": "IndexedJob", "indexed": "IndexedJob", "adam": "adamw", "json": "jsonl",
    "classification": "sequence-classification",
}  # fmt: skip
_POD_FIELDS = """
    containers initContainers affinity hostNetwork securityContext serviceAccountName serviceAccount runtimeClassName
    schedulerName topologySpreadConstraints dnsPolicy hostAliases hostIPC nodeName
"""
_HINTS = {
    **{name.lower(): "a pod's own fields stand in spec.podTemplate.spec" for name in _POD_FIELDS.split()},
    "fp16": "write spec.training.precision: {type: fp16}",
    "bf16": "write spec.training.precision: {type: bf16}",
}
_MOST_PLACES = 3


def _plain(word: str) -> str:
    """Return a key without what people spell differently: case, `_` and `-`."""
    return word.replace("_", "").replace("-", "").lower()


def suggest_key(root: type[Section], parent: Path, key: str) -> tuple[str | None, tuple[Path, ...]]:
    """Return a hint for an unknown key in the section at `parent`, and the fields that may be meant."""
    shape = shape_at(root, parent)
    if shape is None or shape.section is None:
        return None, ()
    siblings = list(fields_of(shape.section))
    same = {_plain(sibling): sibling for sibling in siblings}
    plain = _plain(key)
    if plain in same:
        return f"did you mean `{same[plain]}`? Keys are camelCase", ((*parent, same[plain]),)
    if plain in _HINTS:
        return _HINTS[plain], ()
    if target := _known_as(parent, siblings, plain):
        return f"it is called {format_path(target)} here", (target,)
    return _nearest(root, parent, same, plain) or (f"known here: {', '.join(siblings)}", ())


def _nearest(
    root: type[Section], parent: Path, same: dict[str, str], plain: str
) -> tuple[str, tuple[Path, ...]] | None:
    """Return hint and fields for what is written nearly like it here, or like it elsewhere."""
    close = get_close_matches(plain, same, 1, 0.8)
    if not close and (places := _elsewhere(root, parent, plain)):
        return f"it belongs elsewhere: {_join(places)}", places
    if close := close or get_close_matches(plain, same, 1, 0.6):
        return f"did you mean `{same[close[0]]}`?", ((*parent, same[close[0]]),)
    names = {_plain(str(path[-1])) for path, _ in walk(root)}
    if (close := get_close_matches(plain, names, 1, 0.85)) and (places := _elsewhere(root, parent, close[0])):
        return f"did you mean {_join(places)}?", places
    return None


def _known_as(parent: Path, siblings: Iterable[str], plain: str) -> Path | None:
    """Return the field that other tools call so."""
    for target, names in _OTHER_NAMES.items():
        if plain in {_plain(name) for name in names.split()}:
            if target.startswith("spec."):
                return tuple(target.split("."))
            if target in siblings:
                return (*parent, target)
    return None


def _elsewhere(root: type[Section], parent: Path, plain: str) -> tuple[Path, ...]:
    """Return the fields of that name, those below `parent` if there are some; none if too many."""
    found = [path for path, _ in walk(root) if _plain(str(path[-1])) == plain]
    found = [path for path in found if path[: len(parent)] == parent] or found
    if len(found) > _MOST_PLACES:
        shallow = min(map(len, found))
        found = [path for path in found if len(path) == shallow]
    return tuple(found) if len(found) <= _MOST_PLACES else ()


def _join(places: Iterable[Path]) -> str:
    return " or ".join(format_path(path).replace("[0]", "[]") for path in places)


def suggest_word(given: object, choices: Iterable[str]) -> str | None:
    """Return a hint for a word that is not among the choices."""
    choices = list(choices)
    if not isinstance(given, str):
        return None
    plain = {_plain(choice): choice for choice in choices}
    word = _OTHER_WORDS.get(given.lower())
    if word not in choices:
        close = get_close_matches(_plain(given), plain, 1, 0.6)
        word = plain[close[0]] if close else None
    return f"did you mean {word}?" if word else None
