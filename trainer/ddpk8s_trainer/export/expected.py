"""What the exported model must reproduce: samples with their logits, texts with their tokens."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

MAX_SAMPLES = 64
# What tokenizers trip over: two scripts, case, accents, an emoji, blanks, nothing.
FIXED_TEXTS = (
    "服务很好\uff0c下次还来\uff01",
    "Mixed CASE with 中文 and 123.45",
    "naïve café 🙂",
    "  two  blanks ",
    "",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One sample without padding; `token_types` is None for models that have none."""

    ids: list[int]
    token_types: list[int] | None


@dataclass(frozen=True)
class Expected:
    """What a fresh process compares with.

    Attributes:
        rows: Samples without padding.
        logits: float32 [samples, labels], computed by the model in memory.
        digest: Of the model in memory.
        initial_digest: Of the model before training.
        labels: In the order of their ids.
        texts: Texts to be tokenised.
        tokens: Their token ids.
        remote_code: Whether the model's class comes with the model.
    """

    rows: list[Row]
    logits: npt.NDArray[np.float32]
    digest: str
    initial_digest: str
    labels: list[str]
    texts: list[str]
    tokens: list[list[int]]
    remote_code: bool

    def save(self, path: Path) -> None:
        """Write everything into one .npz file."""
        facts = asdict(self)
        facts.pop("logits")
        text = json.dumps(facts, ensure_ascii=False).encode()
        np.savez(path, logits=self.logits, facts=np.frombuffer(text, dtype=np.uint8))

    @classmethod
    def load(cls, path: Path) -> "Expected":
        """Return what `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            facts: dict[str, Any] = json.loads(file["facts"].tobytes())
            rows = [Row(**row) for row in facts.pop("rows")]
            return cls(rows=rows, logits=file["logits"], **facts)


def unpad(batches: Sequence[Mapping[str, Tensor]]) -> list[Row]:
    """Return the first samples of collated batches without padding.

    Args:
        batches: Each with `input_ids` and `attention_mask`, int64 [batch, tokens], perhaps `token_type_ids`;
            other keys are ignored.
    """
    rows: list[Row] = []
    for batch in batches:
        types = batch.get("token_type_ids")
        for number, mask in enumerate(batch["attention_mask"].bool().cpu()):
            ids = batch["input_ids"][number].cpu()[mask].tolist()
            rows.append(Row(ids, None if types is None else types[number].cpu()[mask].tolist()))
    return rows[:MAX_SAMPLES]


def compute_logits(model: nn.Module, rows: Sequence[Row], batch_size: int, pad_id: int) -> Tensor:
    """Return logits, float32 [rows, labels], of a model on the CPU in evaluation mode."""
    with torch.inference_mode():
        return torch.cat([model(**batch).logits.float() for batch in _batches(rows, batch_size, pad_id)])


def _batches(rows: Sequence[Row], batch_size: int, pad_id: int) -> Iterator[dict[str, Tensor]]:
    for start in range(0, len(rows), batch_size):
        group = rows[start : start + batch_size]
        width = max(len(row.ids) for row in group)
        batch = {
            "input_ids": torch.tensor([row.ids + [pad_id] * (width - len(row.ids)) for row in group]),
            "attention_mask": torch.tensor([[1] * len(r.ids) + [0] * (width - len(r.ids)) for r in group]),
        }
        types = [row.token_types for row in group if row.token_types is not None]
        if len(types) == len(group):
            batch["token_type_ids"] = torch.tensor([t + [0] * (width - len(t)) for t in types])
        yield batch
