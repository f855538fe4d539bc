"""Write a model directory beside its place, have it checked, and only then put it there."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers.utils.logging import disable_progress_bar

from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.errors import TrainingFailed
from ddpk8s_trainer.export.digest import parameters_digest
from ddpk8s_trainer.export.expected import FIXED_TEXTS, Expected, Row, compute_logits, unpad
from ddpk8s_trainer.export.place import publish, settle, sync

REFERENCE_BATCH_SIZE = 8
TEXTS = 32
CHECK_SECONDS = 1800
EXPECTED_FILE = ".expected.npz"
# What torchrun tells its workers; the check is a process of its own and must not take itself for one.
_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_TORCHRUN_PREFIXES = ("GROUP_", "ROLE_", "TORCHELASTIC_", "TORCH_NCCL_", "PET_", "DDPK8S_")


@dataclass(frozen=True, slots=True)
class ExportResult:
    """An export that was checked.

    Attributes:
        directory: Where the model is.
        samples: Number of samples compared.
        max_difference: Largest absolute difference of a logit.
        tolerance: What it was allowed to be.
        digest: Of the parameters.
        size: Bytes of all files.
        seconds: Time it took, the check included.
    """

    directory: Path
    samples: int
    max_difference: float
    tolerance: float
    digest: str
    size: int
    seconds: float


def export_model(
    model: Any,
    tokenizer: Any,
    labels: Sequence[str],
    directory: Path,
    samples: Sequence[Mapping[str, Tensor]],
    initial_digest: str,
) -> ExportResult:
    """Write model and tokenizer to `directory`, which stays as it is unless a fresh process reads the same.

    Args:
        model: Hugging Face model with fp32 parameters, unwrapped.
        tokenizer: Its tokenizer.
        labels: Names in the order of their ids.
        directory: Where the model belongs; an older one there is replaced.
        samples: Collated batches to compare logits on (`input_ids`, `attention_mask`, perhaps
            `token_type_ids`); the first 64 samples are used.
        initial_digest: `parameters_digest` of the model before training.

    Raises:
        TrainingFailed: it cannot be written, or reads differently.
    """
    began = time.monotonic()
    partial = directory.with_name(f".partial-{directory.name}")
    settle(directory)
    try:
        write(partial, model, tokenizer, labels, samples, initial_digest)
        verdict = check(partial)
        (partial / EXPECTED_FILE).unlink()
        sync(partial)
        publish(partial, directory)
    except (OSError, SafetensorError) as error:
        raise TrainingFailed(
            f"cannot write the model to {directory}: {error}",
            hint="the checkpoints are intact: make room, then run again",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return ExportResult(
        directory=directory,
        samples=verdict["samples"],
        max_difference=verdict["max_difference"],
        tolerance=verdict["tolerance"],
        digest=verdict["digest"],
        size=sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()),
        seconds=time.monotonic() - began,
    )


def write(
    partial: Path,
    model: Any,
    tokenizer: Any,
    labels: Sequence[str],
    samples: Sequence[Mapping[str, Tensor]],
    initial_digest: str,
) -> None:
    """Write model, tokenizer and what the check compares with; arguments as of `export_model`.

    Raises:
        TrainingFailed: there are no samples to compare on.
    """
    rows = unpad(samples)
    if not rows:
        raise TrainingFailed("no samples were given to compare the exported model on")
    # Its bar is for terminals; here it would land between lines of a log.
    disable_progress_bar()
    model.config.id2label = dict(enumerate(labels))
    model.config.label2id = {label: number for number, label in enumerate(labels)}
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with _on_cpu(model):
        model.save_pretrained(partial)
        beat()
        logits = compute_logits(model, rows, REFERENCE_BATCH_SIZE, tokenizer.pad_token_id)
    tokenizer.save_pretrained(partial)
    texts = [*FIXED_TEXTS, *_texts(tokenizer, rows)]
    Expected(
        rows=rows,
        logits=logits.numpy(),
        digest=parameters_digest(model),
        initial_digest=initial_digest,
        labels=list(labels),
        texts=texts,
        tokens=[tokenizer(text)["input_ids"] for text in texts],
        remote_code=bool(getattr(model.config, "auto_map", None)),
    ).save(partial / EXPECTED_FILE)


def check(partial: Path) -> dict[str, Any]:
    """Have a fresh process read the directory; return its verdict.

    Raises:
        TrainingFailed: it finds any difference, or does not come to an end.
    """
    expected = partial / EXPECTED_FILE
    command = [sys.executable, "-m", "ddpk8s_trainer.export.verify", str(partial), str(expected)]
    done = _run(command)
    try:
        verdict: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        problems = verdict["problems"]
    except (IndexError, ValueError, KeyError, TypeError) as error:
        last = "\n".join(done.stderr.splitlines()[-20:])
        raise TrainingFailed(
            f"the process that reads the exported model again died (exit code {done.returncode}):\n{last}"
        ) from error
    if problems or done.returncode != 0:
        raise TrainingFailed(
            "the exported model is not the one in memory: " + "; ".join(problems),
            hint="it was not put in place; the checkpoints are intact",
        )
    return verdict | {"samples": len(Expected.load(expected).rows)}


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the check and beat meanwhile, since it is this rank's work and has a time limit of its own.

    Raises:
        TrainingFailed: it does not come to an end.
    """
    deadline = time.monotonic() + CHECK_SECONDS
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
    ) as process:
        while True:
            beat()
            try:
                stdout, stderr = process.communicate(timeout=0.5)
            except subprocess.TimeoutExpired as error:
                if time.monotonic() > deadline:
                    process.kill()
                    raise TrainingFailed(
                        f"the exported model was not read again within {CHECK_SECONDS} s"
                    ) from error
            else:
                return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def clean_environment() -> dict[str, str]:
    """Return the environment for the check: no word of the gang, no network, no GPU."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _TORCHRUN and not name.startswith(_TORCHRUN_PREFIXES)
    }
    return kept | {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "CUDA_VISIBLE_DEVICES": "",
    }


@contextmanager
def _on_cpu(model: Any) -> Iterator[None]:
    """Compute on the CPU in evaluation mode: the check does too, and GPUs may take TF32 for fp32."""
    device, training = next(model.parameters()).device, model.training
    model.to("cpu").eval()
    try:
        with torch.autocast("cpu", enabled=False):
            yield
    finally:
        model.to(device).train(training)


def _texts(tokenizer: Any, rows: Sequence[Row]) -> list[str]:
    return [tokenizer.decode(row.ids, skip_special_tokens=True) for row in rows[:TEXTS]]
