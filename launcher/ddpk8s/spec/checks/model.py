"""The model: where it comes from, its tokenizer, its labels and the numbers of a configuration."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ddpk8s.spec.model import Model
from ddpk8s.spec.problems import Problem, error, warning
from ddpk8s.spec.training import Training
from ddpk8s.spec.values import show

_MODEL = "spec.training.model"
_POSITIVE = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
)
_SPARE_POSITIONS = 2
"""RoBERTa and its kin number positions from 2 on, so two of `max_position_embeddings` are never used."""


def check_model(training: Training) -> Iterator[Problem]:
    """Yield problems of `training.model`."""
    model = training.model
    if (model.path is None) == (model.config is None):
        both = model.path is not None
        text = (
            "has both `path` and `config`, but must have one" if both else "has neither `path` nor `config`"
        )
        hint = "path: a pretrained model, config: a model with random weights"
        yield error(_MODEL, text, hint, [f"{_MODEL}.path", f"{_MODEL}.config"])
    elif model.config is not None:
        yield from _check_config(model.config, training.data.max_length)
    yield from _check_tokenizer(model)
    yield from _check_labels(model.labels)


def _check_tokenizer(model: Model) -> Iterator[Problem]:
    build, related = f"{_MODEL}.buildTokenizer", [f"{_MODEL}.tokenizer", f"{_MODEL}.path", f"{_MODEL}.config"]
    if model.build_tokenizer is not None and model.tokenizer is not None:
        yield error(
            build, f"and {_MODEL}.tokenizer are both given, but exclude each other", "remove one", related
        )
    elif model.build_tokenizer is not None and model.path is not None and model.config is None:
        text = f"is set but {_MODEL}.path names a pretrained model, which knows only its own tokens"
        yield error(build, text, "remove it", related)
    elif (
        model.config is not None
        and model.path is None
        and model.tokenizer is None
        and model.build_tokenizer is None
    ):
        text = "has a `config` but no tokenizer"
        yield error(_MODEL, text, "add `buildTokenizer: {}` or `tokenizer: DIRECTORY`", [build, *related])
    if model.build_tokenizer is not None and model.config and "vocab_size" in model.config:
        size, wanted = model.config["vocab_size"], model.build_tokenizer.vocab_size
        if size != wanted:
            text = f"is {show(size)} but {build}.vocabSize is {wanted}, which counts"
            yield warning((*_path(), "config", "vocab_size"), text, "remove it", [build])
    if model.revision is not None and (model.path is None or model.path.startswith("/")):
        text = f"is set but {_MODEL}.path names no model on the hub, so it means nothing"
        yield warning(f"{_MODEL}.revision", text, "remove it", [f"{_MODEL}.path"])


def _check_config(config: dict[str, Any], max_length: int) -> Iterator[Problem]:
    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        hint = "write for example model_type: bert"
        yield error(f"{_MODEL}.config", "has no `model_type`, so nobody knows what model it is", hint)
    for key in _POSITIVE:
        value = config.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            plain = isinstance(value, str) and value.isdecimal() and int(value)
            mended = f"write {key}: {int(value)}, without quotes" if plain else None
            yield error(
                (*_path(), "config", key), f"is {show(value)}, but must be a whole number above 0", mended
            )
            return
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if hidden and heads and hidden % heads:
        yield error(
            (*_path(), "config", "hidden_size"),
            f"is {hidden}, no multiple of {_MODEL}.config.num_attention_heads, which is {heads}",
            f"write for example hidden_size: {(hidden // heads + 1) * heads}",
        )
    positions = config.get("max_position_embeddings")
    if positions is None:
        return
    usable = positions - (_SPARE_POSITIONS if isinstance(kind, str) and "roberta" in kind else 0)
    if max_length > usable:
        spare = f", of which {usable} can be used" if usable != positions else ""
        yield error(
            "spec.training.data.maxLength",
            f"is {max_length} but {_MODEL}.config.max_position_embeddings is {positions}{spare}",
            f"set maxLength: {usable}, or raise max_position_embeddings",
            [f"{_MODEL}.config"],
        )


def _check_labels(labels: list[str] | None) -> Iterator[Problem]:
    if labels is None:
        return
    if len(labels) < 2:
        hint = "leave it out to take the labels from the training data"
        yield error(f"{_MODEL}.labels", f"has {len(labels)} of at least 2 labels", hint)
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        yield error(f"{_MODEL}.labels", f"has {', '.join(map(repr, repeated))} more than once")


def _path() -> tuple[str, ...]:
    return tuple(_MODEL.split("."))
