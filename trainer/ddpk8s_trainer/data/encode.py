"""Turn the samples of a source into arrays of tokens on disk."""

import json
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from ddpk8s.spec.training import Data
from ddpk8s_trainer.data.labels import Labels
from ddpk8s_trainer.data.read import Samples, read_samples
from ddpk8s_trainer.data.sources import Source
from ddpk8s_trainer.data.store import META
from ddpk8s_trainer.data.tokenizer import parallel_tokenizers
from ddpk8s_trainer.errors import DataMistake

REPORT_SECONDS = 5.0


@dataclass(frozen=True)
class Job:
    """What the samples of a split are made with."""

    data: Data
    tokenizer: Any
    labels: Labels
    report: Callable[[str], None]


def vocabulary_size(tokenizer: Any) -> int:
    """Return one more than the greatest token id; ids of some tokenizers have gaps."""
    return 1 + max(map(int, tokenizer.get_vocab().values()))


def check_room(tokenizer: Any, data: Data) -> None:
    """Check that `spec.training.data.maxLength` leaves room for text.

    Raises:
        DataMistake: Special tokens fill it.
    """
    texts = 2 if data.text_pair_column else 1
    special = tokenizer.num_special_tokens_to_add(pair=texts == 2)
    if data.max_length < special + texts:
        raise DataMistake(
            f"spec.training.data.maxLength {data.max_length} is all taken by {special} special tokens",
            hint=f"set it to {special + texts} at least",
        )


class Tokenized:
    """Files of one split as they grow: tokens go to disk at once, the rest is small."""

    def __init__(self, directory: Path, source: Source, job: Job) -> None:
        self.source = source
        self.job = job
        self.directory = directory
        self.kind = np.dtype(np.uint16 if vocabulary_size(job.tokenizer) <= 1 << 16 else np.uint32)
        self.pairs = bool(job.data.text_pair_column) and "token_type_ids" in job.tokenizer.model_input_names
        self.lengths = array("i")
        self.codes: list[NDArray[np.int32]] = []
        self.hashes = array("Q")
        self.dropped = self.truncated = self.seen = 0
        self.shortest: int | None = None

    def run(self) -> None:
        """Read and tokenise everything.

        Raises:
            DataMistake: A sample is not as the configuration says, or none is left.
        """
        said = time.monotonic()
        tokens_path, types_path = (self.directory / f"{name}.bin" for name in ("tokens", "token_types"))
        with tokens_path.open("wb") as tokens, types_path.open("wb") as types, parallel_tokenizers():
            for samples in read_samples(self.source, self.job.data):
                self._add(samples, tokens, types)
                due = time.monotonic() - said > REPORT_SECONDS
                self.job.report(f"tokenizing {self.source.split}: {self.seen:,} samples" if due else "")
                said = time.monotonic() if due else said
        if not self.pairs:
            types_path.unlink()
        if not self.lengths:
            raise self._nothing_left()

    def _add(self, samples: Samples, tokens: IO[bytes], types: IO[bytes]) -> None:
        codes = self.job.labels.encode(samples.chunk, samples.labels)
        ids, segments = self._encode(samples.texts, samples.pairs, truncate=False)
        keep = self._fit(samples, ids, segments)
        self.seen += len(ids)
        self.codes.append(codes[keep])
        self.lengths.extend(len(ids[i]) for i in keep)
        self.hashes.extend(text_hash(samples, i) for i in keep)
        tokens.write(_flat([ids[i] for i in keep], self.kind))
        if self.pairs:
            types.write(_flat([segments[i] for i in keep], np.dtype(np.uint8)))

    def _encode(
        self, texts: list[str], pairs: list[str] | None, truncate: bool
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return token ids and segment ids (empty when the task has no pairs) of each sample."""
        found = self.job.tokenizer(
            texts,
            pairs,
            truncation="longest_first" if truncate else False,
            max_length=self.job.data.max_length if truncate else None,
            return_attention_mask=False,
            return_token_type_ids=self.pairs,
            verbose=False,
        )
        return found["input_ids"], found["token_type_ids"] if self.pairs else []

    def _fit(self, samples: Samples, ids: list[list[int]], segments: list[list[int]]) -> list[int]:
        """Make samples fit into `maxLength` as `tooLong` says; return the indices of those that stay.

        Samples without any token (an empty text, and a tokenizer without special tokens) go.
        """
        limit, rule = self.job.data.max_length, self.job.data.too_long
        long = [i for i, sample in enumerate(ids) if len(sample) > limit]
        if long and rule == "error":
            raise DataMistake(
                f"{samples.chunk.where(long[0])}: the text has {len(ids[long[0]])} tokens, but "
                f"spec.training.data.maxLength is {limit} and spec.training.data.tooLong is error",
                hint="raise maxLength, or set tooLong to truncate or drop",
            )
        if long and rule == "truncate":
            self.truncated += len(long)
            pairs = [samples.pairs[i] for i in long] if samples.pairs else None
            shorter, types = self._encode([samples.texts[i] for i in long], pairs, truncate=True)
            for at, i in enumerate(long):
                ids[i] = shorter[at]
                if self.pairs:
                    segments[i] = types[at]
        shortest = min(len(sample) for sample in ids)
        self.shortest = shortest if self.shortest is None else min(self.shortest, shortest)
        keep = [i for i, sample in enumerate(ids) if 0 < len(sample) <= limit]
        self.dropped += len(ids) - len(keep)
        return keep

    def _nothing_left(self) -> DataMistake:
        data = self.job.data
        if not self.shortest:
            return DataMistake(f"{self.source.field}: all {self.seen} samples are without any token")
        return DataMistake(
            f"{self.source.field}: all {self.seen} samples are longer than spec.training.data.maxLength "
            f"{data.max_length}; the shortest has {self.shortest} tokens",
            hint="raise maxLength, or set spec.training.data.tooLong to truncate",
        )

    def save(self, fingerprint: str, shared_with: NDArray[np.uint64] | None) -> None:
        """Write offsets, labels, text hashes and what is known about the split."""
        names, labels = self.job.labels.finish(np.concatenate(self.codes), self.source.field)
        lengths, hashes = np.array(self.lengths, np.int32), np.array(self.hashes, np.uint64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
        arrays = {"offsets": offsets, "labels": labels.astype(np.int32), "text_hashes": hashes}
        for name, values in arrays.items():
            values.tofile(self.directory / f"{name}.bin")
        counts = np.bincount(labels, minlength=len(names)).tolist()
        meta = {
            "fingerprint": fingerprint,
            "tokenType": self.kind.name,
            "pairs": self.pairs,
            "labels": names,
            "sharedTexts": 0 if shared_with is None else int(np.isin(hashes, shared_with).sum()),
            "facts": {
                "samples": len(lengths),
                "tokens": int(lengths.sum()),
                "dropped": self.dropped,
                "truncated": self.truncated,
                **length_facts(lengths, self.job.data.max_length),
                "label_counts": dict(zip(names, counts, strict=True)),
            },
        }
        (self.directory / META).write_text(json.dumps(meta, ensure_ascii=False), encoding="utf-8")


def length_facts(lengths: NDArray[np.int32], max_length: int) -> dict[str, float | int]:
    """Return how long samples are, and what share of the tokens padding all to `max_length` would make."""
    facts: dict[str, float | int] = {"length_mean": round(float(lengths.mean()), 1)}
    facts |= {f"length_p{share}": int(np.percentile(lengths, share)) for share in (50, 90, 99)}
    padding = 1 - float(lengths.mean()) / max_length
    return facts | {"length_max": int(lengths.max()), "padding_to_max_length": round(padding, 4)}


def text_hash(samples: Samples, index: int) -> int:
    """Return a hash of the text (and pair) of a sample, blanks around it aside."""
    pair = samples.pairs[index].strip() if samples.pairs else ""
    return xxhash.xxh3_64_intdigest(f"{samples.texts[index].strip()}\0{pair}".encode())


def _flat(samples: list[list[int]], kind: np.dtype[Any]) -> bytes:
    flat = np.fromiter((value for sample in samples for value in sample), kind, sum(map(len, samples)))
    return flat.tobytes()
