"""What is trained: the quickstart's job, read from its own file, on data made by its own script."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.environment import PROCESSES, ROOT
from ddpk8s.spec.load import load_job
from ddpk8s.spec.training import Training
from ddpk8s_trainer.config import TrainerConfig
from ddpk8s_trainer.data.cache import TokenDataset, prepare

JOB = ROOT / "k8s" / "examples" / "reviews.yaml"

OnStep = Callable[[int], None]
"""Called after each optimizer step with its number, from 1; the first time, before any, with 0."""


@dataclass(frozen=True)
class Work:
    """A training, as every contender gets it.

    Attributes:
        config: The trainer's configuration file.
        data: Token cache of the training samples.
        validation: That of the validation samples.
        tokenizer: Directory of the tokenizer.
        labels: Names of the labels.
        block_steps: Optimizer steps of one turn.
        options: Variants that a contender may be asked for.
    """

    config: str
    data: str
    validation: str
    tokenizer: str
    labels: list[str]
    block_steps: int
    options: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "Work":
        """Return what `write` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> Path:
        """Write to a file and return it."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path

    @cached_property
    def training(self) -> Training:
        """The `training` section."""
        document = json.loads(Path(self.config).read_text(encoding="utf-8"))
        return Training.model_validate(document["training"])

    @property
    def per_device_batch(self) -> int:
        """Samples of a process in one optimizer step."""
        return self.training.batch.global_batch // PROCESSES

    @property
    def epochs(self) -> int:
        """Passes over the data."""
        return self.training.num_epochs or 1

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole training."""
        return self.epochs * -(-len(self.dataset) // self.training.batch.global_batch)

    @property
    def warmup_steps(self) -> int:
        """Optimizer steps in which the learning rate rises."""
        return round(self.total_steps * (self.training.schedule.warmup_ratio or 0.0))

    @cached_property
    def dataset(self) -> TokenDataset:
        """The training samples."""
        return TokenDataset(self.data)

    def samples(self, directory: str | None = None) -> list[dict[str, Any]]:
        """Return the samples as a list of dictionaries, in memory: nothing is faster to read."""
        dataset = TokenDataset(directory) if directory else self.dataset
        return [
            {"input_ids": torch.from_numpy(dataset.sample(i)), "labels": int(dataset.labels[i])}
            for i in range(len(dataset))
        ]

    def load_tokenizer(self) -> Any:
        """Return the tokenizer."""
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.tokenizer)

    def new_model(self) -> nn.Module:
        """Return the model with new random weights, the same on all ranks and for all contenders."""
        from ddpk8s_trainer.model import load_model
        from ddpk8s_trainer.seeding import seed_everything

        seed_everything(self.training.seed)
        module = load_model(self.training.model, self.load_tokenizer(), self.labels).module
        return module.train()


class Reviews:
    """The reviews and the tokenizer made from them, in a directory."""

    def __init__(self, directory: Path) -> None:
        """Make the data, and tokenise them as the quickstart does."""
        self.directory = directory
        script = ROOT / "examples" / "prepare_reviews.py"
        command = [sys.executable, str(script), "--output", str(directory / "data")]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        training = load_job(JOB).spec.training
        assert training is not None  # the quickstart uses the bundled trainer
        document = training.to_document()
        document["data"]["train"] = str(directory / "data" / "train.jsonl")
        document["data"]["validation"] = str(directory / "data" / "validation.jsonl")
        document["checkpoint"]["directory"] = str(directory / "checkpoints")
        self._prepared = prepare(Training.model_validate(document), directory / "cache", lambda _: None)
        # From here on with the tokenizer at hand: a part of the data must not get another vocabulary.
        del document["model"]["buildTokenizer"]
        document["model"]["tokenizer"] = self._prepared.tokenizer
        self.document: dict[str, Any] = document

    @property
    def samples(self) -> int:
        """Number of training samples."""
        return len(TokenDataset(self._prepared.train))

    def head(self, samples: int) -> Path:
        """Return a file of the first training samples; their order in the file is random."""
        lines = (
            (self.directory / "data" / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        )
        path = self.directory / "data" / f"train-{samples}.jsonl"
        path.write_text("".join(lines[:samples]), encoding="utf-8")
        return path

    def work(self, name: str, changes: dict[str, Any], block_steps: int = 0, **options: Any) -> Path:
        """Write a `Work` and return its file.

        Args:
            name: Names the job and the files.
            changes: What differs from the quickstart's `training` section.
            block_steps: Optimizer steps of one turn.
            options: Variants that a contender may be asked for.
        """
        document = dict(self.document)
        for key, change in changes.items():
            document[key] = {**document.get(key, {}), **change} if isinstance(change, dict) else change
        training = Training.model_validate(document)
        config = self.directory / f"{name}.training.json"
        content = {"job": name, "runId": "benchmark", "training": training.to_document()}
        config.write_text(json.dumps(content), encoding="utf-8")
        cache = TrainerConfig(name, "benchmark", 0, training).cache_directory
        prepared = prepare(training, cache, lambda _: None)
        work = Work(
            config=str(config),
            data=prepared.train,
            validation=prepared.validation or "",
            tokenizer=prepared.tokenizer,
            labels=prepared.labels,
            block_steps=block_steps,
            options=options,
        )
        return work.write(self.directory / f"{name}.json")
