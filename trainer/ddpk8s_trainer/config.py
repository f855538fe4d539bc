"""What the trainer is told: job, run and the `training` section, from one JSON file."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ddpk8s.spec.training import Training
from ddpk8s_trainer.errors import ConfigurationMistake


@dataclass(frozen=True)
class TrainerConfig:
    """The trainer's configuration, the same for every rank.

    Attributes:
        job: Name of the job.
        run_id: Identity of the run; checkpoints belong to it.
        attempt: Number of this start within the run, from 0.
        training: The `training` section with every path as this process sees it.
    """

    job: str
    run_id: str
    attempt: int
    training: Training

    @property
    def job_directory(self) -> Path:
        """Folder of everything this job leaves behind."""
        return Path(self.training.checkpoint.directory) / self.job

    @property
    def cache_directory(self) -> Path:
        """Folder of tokenised data, shared by the jobs of one checkpoint directory."""
        given = self.training.data.cache_directory
        return Path(given) if given else Path(self.training.checkpoint.directory) / ".cache"


def load_config(path: Path) -> TrainerConfig:
    """Return the configuration in the JSON file `path`; the attempt comes from the environment.

    Raises:
        ConfigurationMistake: the file is missing, no JSON, or not a valid configuration.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        training = Training.model_validate(document["training"])
        return TrainerConfig(
            job=document["job"],
            run_id=document["runId"],
            attempt=int(os.environ.get("DDPK8S_ATTEMPT", "0")),
            training=training,
        )
    except OSError as error:
        raise ConfigurationMistake(f"cannot read the configuration {path}: {error.strerror}") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigurationMistake(
            f"{path} is no valid training configuration: {problems}",
            "check the job file with `ddpk8s validate`",
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationMistake(
            f"{path} is no training configuration: {error!r}",
            'it holds {"job": ..., "runId": ..., "training": {...}}',
        ) from error
