"""Build a run: data, model, strategy, and the state of the newest valid checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from ddpk8s.spec.training import Training
from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.callbacks import Callback
from ddpk8s_trainer.checkpoint import CheckpointManager, check_space
from ddpk8s_trainer.clock import SaveClock
from ddpk8s_trainer.config import TrainerConfig
from ddpk8s_trainer.data.cache import PreparedData, TokenDataset, prepare
from ddpk8s_trainer.data.collate import collate
from ddpk8s_trainer.data.plan import Plan, evaluation_batches
from ddpk8s_trainer.data.store import is_whole
from ddpk8s_trainer.data.tokenizer import load_tokenizer
from ddpk8s_trainer.distributed import Gang
from ddpk8s_trainer.errors import ConfigurationMistake, Stopped
from ddpk8s_trainer.export import parameters_digest
from ddpk8s_trainer.metrics import Recorder
from ddpk8s_trainer.model import check_length, load_model
from ddpk8s_trainer.model.dropout import use_lean_dropout
from ddpk8s_trainer.optim import warmup_steps
from ddpk8s_trainer.resume import resume
from ddpk8s_trainer.run import Run, say
from ddpk8s_trainer.samplelog import SampleLog
from ddpk8s_trainer.seeding import seed_everything
from ddpk8s_trainer.signals import StopRequest
from ddpk8s_trainer.state import TrainState
from ddpk8s_trainer.strategy import DDPStrategy
from ddpk8s_trainer.warmup import find_unused_parameters, warm_up


@dataclass(frozen=True)
class Tokens:
    """The tokenised data and its tokenizer."""

    prepared: PreparedData
    train: TokenDataset
    validation: TokenDataset | None
    tokenizer: Any


def build_run(
    config: TrainerConfig, gang: Gang, stop: StopRequest, recorder: Recorder, callbacks: Sequence[Callback]
) -> tuple[Run, Any, str]:
    """Return the run, ready for its next step, its tokenizer, and the digest of its first weights. Collective.

    Raises:
        ConfigurationMistake: data, model or checkpoints cannot be used as configured.
        Stopped: asked to stop meanwhile.
    """
    training = config.training
    checkpoints = CheckpointManager(
        config.job_directory,
        config.run_id,
        keep=training.checkpoint.keep,
        asynchronous=training.checkpoint.asynchronous,
        resume=training.resume,
        report=lambda message: say(gang, message),
    )
    tokens = load_tokens(config, gang, stop, recorder)
    plan = Plan(
        tokens.train.lengths, training.batch, training.data.max_length, training.seed, gang.world_size
    )
    total = total_steps(training, plan)
    _check_counts(gang, tokens.train, training, total)

    recorder.phase("loading")
    module = _build_model(training, tokens, gang)
    beat()
    digest = parameters_digest(module) if gang.is_main else ""
    batch = collate(tokens.train, _longest(tokens.train), tokens.tokenizer.pad_token_id, None, gang.device)
    unused = find_unused_parameters(module, batch)
    beat()
    if unused:
        say(gang, f"parameters that the model does not use, and that stay as they are: {', '.join(unused)}")
    strategy = DDPStrategy(module, training, gang, unused)
    beat()
    gang.decide(lambda: check_space(config.job_directory, strategy.state_bytes()))
    seed_everything(training.seed, 1 + gang.rank)  # another dropout on every rank

    run = Run(
        config=config,
        gang=gang,
        stop=stop,
        strategy=strategy,
        plan=plan,
        train_data=tokens.train,
        validation_data=tokens.validation,
        validation_batches=_validation_batches(tokens, training, gang),
        labels=tokens.prepared.labels,
        pad_token_id=tokens.tokenizer.pad_token_id,
        total_steps=total,
        checkpoints=checkpoints,
        recorder=recorder,
        timer=recorder.timer,
        sample_log=_sample_log(config, gang),
        save_clock=SaveClock(training.checkpoint.interval),
        state=TrainState(),
        callbacks=callbacks,
    )
    _introduce(run)
    # Only now that data and model are known to be good: opening moves an older run's checkpoints away.
    resume(run, checkpoints.open())
    warm_up(strategy, batch, gang)
    recorder.timer.take()
    return run, tokens.tokenizer, digest


def load_tokens(config: TrainerConfig, gang: Gang, stop: StopRequest, recorder: Recorder) -> Tokens:
    """Tokenise in rank 0, or find it done, and open the result everywhere. Collective.

    Raises:
        DataMistake: the data cannot be used.
        Stopped: asked to stop meanwhile.
    """
    training = config.training
    recorder.phase("tokenizing")

    def report(message: str) -> None:
        recorder.beat()
        if stop.requested:
            raise Stopped("stopped while the data were prepared", step=0)
        if message:
            say(gang, message)

    prepared = gang.decide(lambda: prepare(training, config.cache_directory, report))
    if not is_whole(Path(prepared.train)):
        # A cache that this node does not see: its first process makes its own, the others find that.
        if gang.local_rank == 0:
            prepare(training, config.cache_directory, lambda _message: beat())
        gang.gather(None)
    train = TokenDataset(prepared.train)
    if prepared.shared_texts:
        say(
            gang,
            f"warning: {prepared.shared_texts} validation samples have a text that is in the training data too: "
            "the evaluation flatters the model",
        )
    validation = TokenDataset(prepared.validation) if prepared.validation else None
    return Tokens(
        prepared, train, validation, load_tokenizer(prepared.tokenizer, training.model, "tokenizer")
    )


def total_steps(training: Training, plan: Plan) -> int:
    """Return the number of optimizer steps: `epochs` passes, bounded by `maxSteps`."""
    bounds = [training.max_steps]
    if training.num_epochs:
        bounds.append(training.num_epochs * plan.steps_per_epoch)
    return min(bound for bound in bounds if bound)


def _introduce(run: Run) -> None:
    training, samples = run.training, len(run.train_data)
    parameters = sum(p.numel() for p in run.strategy.module.parameters())
    kind = getattr(run.strategy.module.config, "model_type", type(run.strategy.module).__name__)
    epochs = run.total_steps / run.plan.steps_per_epoch
    processes = (
        f"{run.gang.world_size} {run.gang.device.type} process{'es' if run.gang.world_size > 1 else ''}"
    )
    run.say(
        f"training {kind} ({parameters / 1e6:.1f} M parameters, {training.precision.type}) on {processes}: "
        f"{run.total_steps:,} steps in global batches of {training.batch.global_batch}, "
        f"{epochs:,.6g} epoch{'' if epochs == 1 else 's'} of {samples:,} samples"
    )
    if training.compile:
        run.say("compiling the model: the first steps take minutes")


def _check_counts(gang: Gang, train: TokenDataset, training: Training, total: int) -> None:
    if gang.world_size > len(train):
        raise ConfigurationMistake(
            f"{gang.world_size} processes are more than the {len(train)} training samples",
            "lower spec.topology.nprocPerNode or nnodes, or bring more data",
        )
    warmup = warmup_steps(training.schedule, total)
    if warmup >= total:
        raise ConfigurationMistake(
            f"the warm-up of {warmup} steps leaves nothing of the {total} steps of this training",
            "lower spec.training.schedule.warmupSteps, or train longer",
        )


def _build_model(training: Training, tokens: Tokens, gang: Gang) -> nn.Module:
    seed_everything(training.seed)  # the same weights on every rank
    loaded = load_model(training.model, tokens.tokenizer, tokens.prepared.labels)
    module = loaded.module
    check_length(module, training.data.max_length)
    if loaded.fresh:
        say(gang, f"new random weights, to be learned: {', '.join(loaded.fresh)}")
    if training.gradient_checkpointing:
        # The reentrant kind breaks with DDP where parameters stay unused.
        enable: Any = module.activation_checkpointing_enable
        enable({"use_reentrant": False})
    if gang.device.type == "cpu" and not training.compile:
        use_lean_dropout(module)
    module.train()
    return module.to(gang.device)


def _longest(train: TokenDataset) -> npt.NDArray[np.int64]:
    """Return the id of the longest sample: if it fits, all do."""
    return np.array([int(np.argmax(train.lengths))], dtype=np.int64)


def _validation_batches(tokens: Tokens, training: Training, gang: Gang) -> list[npt.NDArray[np.int64]]:
    if tokens.validation is None:
        return []
    budget = training.evaluation.tokens_per_device or training.batch.tokens_per_device
    return evaluation_batches(tokens.validation.lengths, budget, gang.rank, gang.world_size)


def _sample_log(config: TrainerConfig, gang: Gang) -> SampleLog:
    directory = config.job_directory / "samples"
    return SampleLog(directory, gang.rank, config.attempt, enabled=config.training.metrics.sample_log)
