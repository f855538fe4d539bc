"""Load a sequence classifier from a Hugging Face directory or hub id, or build one from a configuration."""

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ddpk8s.spec.training import Model
from ddpk8s_trainer.errors import ModelMistake

_DROPOUT = re.compile(r"(dropout|drop_prob|pdrop)")


@dataclass(frozen=True)
class LoadedModel:
    """A model on the CPU in fp32.

    Attributes:
        module: The Hugging Face model.
        fresh: Names of parameters with new random weights, though a pretrained model was loaded.
    """

    module: nn.Module
    fresh: tuple[str, ...] = ()


def load_model(section: Model, tokenizer: Any, labels: list[str]) -> LoadedModel:
    """Return the classifier of `section` for `labels`, fp32 on the CPU.

    Raises:
        ModelMistake: no such model, an unknown or wrong configuration, or a vocabulary smaller than the tokenizer's.
    """
    from transformers import AutoModelForSequenceClassification

    config = _pretrained_config(section) if section.path else _new_config(section, tokenizer)
    config.num_labels = len(labels)
    config.id2label = dict(enumerate(labels))
    config.label2id = {name: index for index, name in enumerate(labels)}
    config.problem_type = "single_label_classification"
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = tokenizer.pad_token_id
    if section.dropout is not None:
        _set_dropout(config, section.dropout)
    _check_vocabulary(config, tokenizer)
    if not section.path:
        return LoadedModel(
            _build(AutoModelForSequenceClassification.from_config, config, dtype=torch.float32)
        )
    try:
        module, info = AutoModelForSequenceClassification.from_pretrained(
            section.path,
            revision=section.revision or "main",
            config=config,
            # The checkpoint's own type may be bf16: training needs fp32 master weights.
            dtype=torch.float32,
            trust_remote_code=section.trust_remote_code,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise _cannot_load(section, error) from error
    mismatched = [entry[0] if isinstance(entry, tuple) else entry for entry in info["mismatched_keys"]]
    return LoadedModel(module, tuple(sorted({*info["missing_keys"], *mismatched})))


def _pretrained_config(section: Model) -> Any:
    from transformers import AutoConfig

    path = section.path or ""
    if path.startswith(("/", ".", "~")) and not Path(path).expanduser().is_dir():
        raise ModelMistake(
            f"spec.training.model.path is {path}, and there is no such directory", _model_hint()
        )
    try:
        return AutoConfig.from_pretrained(
            path, revision=section.revision or "main", trust_remote_code=section.trust_remote_code
        )
    except (OSError, ValueError) as error:
        raise _cannot_load(section, error) from error


def _new_config(section: Model, tokenizer: Any) -> Any:
    from transformers import CONFIG_MAPPING, AutoConfig

    given = dict(section.config or {})
    kind = given.pop("model_type", None)
    if kind not in CONFIG_MAPPING:
        near = difflib.get_close_matches(str(kind), list(CONFIG_MAPPING), 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "for example bert, roberta or electra"
        raise ModelMistake(
            f"spec.training.model.config.model_type is {kind!r}, which transformers does not know", hint
        )
    known = AutoConfig.for_model(kind)
    names = {*vars(known), *getattr(known, "attribute_map", {})}
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], 1)
            hint = f"did you mean {near[0]}?" if near else f"see the configuration of {kind} in transformers"
            raise ModelMistake(
                f"spec.training.model.config.{name}: a {kind} configuration has no such key", hint
            )
    given.setdefault("vocab_size", len(tokenizer))
    given.setdefault("pad_token_id", tokenizer.pad_token_id)
    return _build(AutoConfig.for_model, kind, **given)


def _build(maker: Any, *arguments: Any, **settings: Any) -> Any:
    """Call transformers, whose complaints about a configuration are many kinds of exceptions."""
    try:
        return maker(*arguments, **settings)
    except Exception as error:  # transformers raises what it likes, down to its own validation classes
        problem = " ".join(str(error).split())[:300]
        raise ModelMistake(f"no model can be built from spec.training.model.config: {problem}") from error


def _set_dropout(config: Any, probability: float) -> None:
    for name, value in list(vars(config).items()):
        if _DROPOUT.search(name) and (value is None or isinstance(value, float | int)):
            setattr(config, name, probability)


def _check_vocabulary(config: Any, tokenizer: Any) -> None:
    rows = getattr(config, "vocab_size", None)
    if rows is not None and len(tokenizer) > rows:
        raise ModelMistake(
            f"the tokenizer makes {len(tokenizer)} different tokens, but the model has embeddings for {rows}",
            "use the tokenizer that belongs to the model (spec.training.model.tokenizer), or a vocab_size as large",
        )


def _cannot_load(section: Model, error: Exception) -> ModelMistake:
    local = Path(section.path or "").expanduser().is_dir()
    problem = " ".join(str(error).split())[:300]
    where = "directory" if local else "hub id (there is no such directory here)"
    return ModelMistake(
        f"spec.training.model.path: the {where} {section.path} does not load: {problem}", _model_hint()
    )


def _model_hint() -> str:
    return (
        "name a directory with config.json and weights, as save_pretrained writes it, or a reachable hub id"
    )
