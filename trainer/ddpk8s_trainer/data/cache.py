"""Prepare the data once: read, build or load the tokenizer, tokenise, all of it kept for the next start."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from ddpk8s.spec.training import Data, Training
from ddpk8s_trainer.data.build_tokenizer import build_tokenizer, sampled
from ddpk8s_trainer.data.encode import Job, Tokenized, check_room, vocabulary_size
from ddpk8s_trainer.data.labels import Labels
from ddpk8s_trainer.data.read import read_samples
from ddpk8s_trainer.data.sources import Source, find_source
from ddpk8s_trainer.data.store import TokenDataset, is_whole, making, read_meta, remove_leftovers
from ddpk8s_trainer.data.tokenizer import content_of, load_tokenizer, parallel_tokenizers, tokenizer_name

__all__ = ["PreparedData", "TokenDataset", "prepare"]

FORMAT_VERSION = 1  # raise it when the same inputs give other files
Report = Callable[[str], None]


@dataclass(frozen=True)
class PreparedData:
    """Where the prepared data are and what is known of them; plain values, to be sent to the other ranks.

    Attributes:
        train: Directory to open as `TokenDataset`.
        validation: The same for validation, or None.
        tokenizer: Directory of the tokenizer.
        labels: Names in the order of their ids.
        pad_token_id: Id of the padding token.
        vocab_size: One more than the greatest token id.
        train_facts: samples, tokens, dropped, truncated, length_mean, length_p50, length_p90, length_p99,
        length_max,
            padding_to_max_length (share of padding, were all samples padded to maxLength), label_counts (by
            name).
        validation_facts: The same for validation, or None.
        shared_texts: Validation samples whose text is in the training data too.
        cached: Nothing had to be tokenised.
    """

    train: str
    validation: str | None
    tokenizer: str
    labels: list[str]
    pad_token_id: int
    vocab_size: int
    train_facts: dict[str, Any]
    validation_facts: dict[str, Any] | None
    shared_texts: int
    cached: bool

    def to_json(self) -> str:
        """Return the values as JSON text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "PreparedData":
        """Return what `to_json` wrote."""
        return cls(**json.loads(text))


def prepare(training: Training, cache_directory: Path, report: Report) -> PreparedData:
    """Read and tokenise the data, or find them in the cache. One process of the training calls this.

    Args:
        training: The trainer's configuration.
        cache_directory: Where prepared data are kept; made.
        report: Called with lines about what is going on, and often with an empty one as a sign of life.

    Raises:
        DataMistake: Data are not as the configuration says, or the cache cannot be written.
        ModelMistake: The tokenizer cannot be used, or `spec.training.model.labels` is wrong.
    """
    data = training.data
    train, validation = find_source(data, "train"), find_source(data, "validation")
    assert train is not None  # the field is required
    known = Labels(training.model.labels) if training.model.labels is not None else None
    remove_leftovers(cache_directory)
    train_hash = train.content_hash()
    name, tokenizer = _tokenizer(training, train, train_hash, cache_directory, report)
    check_room(tokenizer, data)
    settings = (data.text_column, data.text_pair_column, data.label_column, data.max_length, data.too_long)
    common = (FORMAT_VERSION, settings, xxhash.xxh3_128_hexdigest(content_of(tokenizer).encode()))

    train_key = _hash("train", common, train_hash, training.model.labels)
    train_directory = cache_directory / f"tokens-{train_key}"
    job = Job(data, tokenizer, known or Labels(None), report)
    cached = is_whole(train_directory)
    if not cached:
        if validation is not None:
            next(read_samples(validation, data))  # a mistake there shows now, not after the training data
        _tokenize(train, job, train_directory, train_key, None)
    meta = _whole_meta(train_directory)

    validation_directory, validation_meta = None, None
    if validation is not None:
        validation_key = _hash("validation", train_key, validation.content_hash())
        validation_directory = cache_directory / f"tokens-{validation_key}"
        if not is_whole(validation_directory):
            cached = False
            job = Job(data, tokenizer, known or Labels(meta["labels"], "the training data"), report)
            _tokenize(validation, job, validation_directory, validation_key, train_directory)
        validation_meta = _whole_meta(validation_directory)
    return PreparedData(
        train=str(train_directory),
        validation=str(validation_directory) if validation_directory else None,
        tokenizer=name,
        labels=meta["labels"],
        pad_token_id=tokenizer.pad_token_id,
        vocab_size=vocabulary_size(tokenizer),
        train_facts=meta["facts"],
        validation_facts=validation_meta["facts"] if validation_meta else None,
        shared_texts=validation_meta["sharedTexts"] if validation_meta else 0,
        cached=cached,
    )


def _tokenizer(
    training: Training, train: Source, train_hash: str, cache: Path, report: Report
) -> tuple[str, Any]:
    """Return (directory, tokenizer), building it or taking it from the hub the first time."""
    named = tokenizer_name(training.model)
    if named is None:
        directory = _built_tokenizer(training, train, train_hash, cache, report)
        return str(directory), load_tokenizer(
            str(directory), training.model, "spec.training.model.buildTokenizer"
        )
    name, field = named
    tokenizer = load_tokenizer(name, training.model, field)
    if Path(name).is_dir():
        return name, tokenizer
    # From the hub: kept here, so that the other ranks and the export need no network.
    directory = cache / f"tokenizer-{_hash(name, content_of(tokenizer))}"
    if not is_whole(directory):
        with making(directory) as partial:
            tokenizer.save_pretrained(str(partial))
    return str(directory), tokenizer


def _built_tokenizer(training: Training, train: Source, train_hash: str, cache: Path, report: Report) -> Path:
    """Return the directory of the tokenizer built from the training texts."""
    data, settings = training.data, training.model.build_tokenizer
    assert settings is not None  # the caller's case
    columns = (data.text_column, data.text_pair_column)
    key = _hash("tokenizer", FORMAT_VERSION, train_hash, columns, settings.to_document(), data.max_length)
    directory = cache / f"tokenizer-{key}"
    if not is_whole(directory):
        report(f"building a {settings.type} tokenizer of {settings.vocab_size:,} tokens")
        with making(directory) as partial, parallel_tokenizers():
            texts = sampled(_all_texts(train, data, report), train.total_bytes())
            build_tokenizer(texts, settings, partial, data.max_length)
    return directory


def _all_texts(source: Source, data: Data, report: Report) -> Iterator[str]:
    for samples in read_samples(source, data):
        report("")
        yield from samples.texts
        yield from samples.pairs or ()


def _tokenize(source: Source, job: Job, directory: Path, key: str, train: Path | None) -> None:
    """Fill a cache directory from a source; `train` is that of the training data, to find shared texts."""
    job.report(f"tokenizing {source.split}")
    with making(directory) as partial:
        tokenized = Tokenized(partial, source, job)
        tokenized.run()
        shared = np.fromfile(train / "text_hashes.bin", np.uint64) if train else None
        tokenized.save(key, shared)
    facts = _whole_meta(directory)["facts"]
    lost = ", ".join(f"{facts[kind]:,} {kind}" for kind in ("truncated", "dropped") if facts[kind])
    lengths = f"mean {facts['length_mean']}, 99 % within {facts['length_p99']}, longest {facts['length_max']}"
    job.report(
        f"{source.split}: {facts['samples']:,} samples, {facts['tokens']:,} tokens ({lengths})"
        + (f"; {lost}" if lost else "")
    )


def _whole_meta(directory: Path) -> dict[str, Any]:
    meta = read_meta(directory)
    assert meta is not None  # made or checked just before
    return meta


def _hash(*parts: object) -> str:
    return xxhash.xxh3_128_hexdigest(repr(parts).encode())
