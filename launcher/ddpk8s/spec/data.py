"""The `training.data` and `training.batch` sections: samples, and how they become optimizer steps."""

from typing import Literal

from ddpk8s.spec.base import Section, field


class Data(Section):
    """Where the samples are and how they become tokens."""

    train: str = field(
        "File, glob or directory of training samples: JSON Lines, CSV, Parquet, or a Hugging Face "
        "dataset directory.",
        example="/data/reviews/train.jsonl",
    )
    validation: str | None = field(
        "The same for validation; absent, nothing is evaluated.",
        None,
        example="/data/reviews/validation.jsonl",
    )
    format: Literal["auto", "jsonl", "csv", "parquet", "dataset"] = field(
        "Format of the files; `auto` goes by their names.", "auto"
    )
    text_column: str = field("Column with the text.", "text")
    text_pair_column: str | None = field("Column with a second text, for tasks on pairs.", None)
    label_column: str = field("Column with the label: a label's name, or its id.", "label")
    max_length: int = field(
        "Longest sequence, special tokens included.", 256, unit="tokens", ge=4, example=256
    )
    too_long: Literal["truncate", "drop", "error"] = field("What happens to longer samples.", "truncate")
    cache_directory: str | None = field(
        "Where tokenized data is kept, memory-mapped by all processes; by default `.cache` in the "
        "checkpoint directory.",
        None,
        example="/scratch/tokens",
    )


class Batch(Section):
    """How samples become optimizer steps. The global batch does not depend on the number of processes."""

    global_batch: int = field(
        "Samples of one optimizer step, over all processes.", 64, unit="samples", ge=1, example=64
    )
    mode: Literal["tokenBudget", "fixed"] = field(
        "`tokenBudget` cuts each global batch into micro-batches of samples of like length within "
        "`tokensPerDevice`; "
        "`fixed` is torch's DistributedSampler with micro-batches of `microBatch` samples.",
        "tokenBudget",
    )
    tokens_per_device: int = field(
        "Most tokens, padding included, of one micro-batch on one device (mode `tokenBudget`).",
        8192,
        unit="tokens",
        ge=16,
        example=8192,
    )
    group_by_length: bool = field(
        "Put samples of like length into the same global batch (mode `tokenBudget`). Which samples meet "
        "is drawn anew each epoch.",
        True,
    )
    micro_batch: int | None = field(
        "Samples of one forward pass on one device (mode `fixed`); by default the share of a device of "
        "the global batch.",
        None,
        unit="samples",
        ge=1,
        example=8,
    )
    gradient_accumulation_steps: int | None = field(
        "Micro-batches of one optimizer step on one device (mode `fixed`); by default what `globalBatch` "
        "needs. "
        "Given, globalBatch = microBatch x gradientAccumulationSteps x processes must hold.",
        None,
        unit="micro-batches",
        ge=1,
        example=2,
    )
    pad_to: Literal["longest", "maxLength"] = field(
        "Pad a micro-batch to its longest sample, or all to `maxLength`.", "longest"
    )
