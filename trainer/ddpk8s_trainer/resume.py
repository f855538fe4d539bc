"""Continue from a checkpoint: check that it fits, say what changed, restore everything."""

from typing import Any

from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.checkpoint import Found
from ddpk8s_trainer.errors import CheckpointMistake
from ddpk8s_trainer.run import Run
from ddpk8s_trainer.samplelog import cut_sample_logs
from ddpk8s_trainer.seeding import random_state, restore_random_state, seed_everything
from ddpk8s_trainer.state import TrainState

# Settings that do not change the mathematics of the steps to come.
_HARMLESS = ("checkpoint", "metrics", "output", "resume", "data.cacheDirectory", "evaluation", "nonFinite")


def resume(run: Run, found: Found | None) -> None:
    """Bring `run` to the state of `found`, or note a fresh start. Collective.

    Raises:
        CheckpointMistake: the checkpoint belongs to other data or another model.
    """
    rejected = [{"path": path, "reason": reason} for path, reason in found.rejected] if found else []
    if found is None:
        run.recorder.start(run.total_steps, None, rejected)
        _cut_samples(run, 0)
        return
    for name, reason in found.rejected:
        run.say(f"checkpoint {name} is not used: {reason}")
    metadata = found.metadata
    _check_plan(run, metadata)
    _say_changes(run, metadata)
    state: dict[str, Any] = {**run.strategy.tensors(), "per_rank": {"random": random_state(run.gang.device)}}
    loaded = run.checkpoints.load(found, state)
    run.strategy.restore(loaded)
    run.strategy.restore_scalars(metadata["strategy"])
    run.state = TrainState.from_json(metadata["state"])
    own = loaded.get("per_rank")
    if own and metadata["worldSize"] == run.gang.world_size:
        restore_random_state(own["random"], run.gang.device)
    else:
        # Another number of ranks: there is no stream to continue, so each rank begins one of its own.
        seed_everything(run.training.seed, 1 + run.gang.rank, found.step)
        before = metadata["worldSize"]
        run.say(f"number of processes: {before} -> {run.gang.world_size}; same batches, new random streams")
    beat(found.step)
    _cut_samples(run, found.step)
    run.recorder.start(run.total_steps, found.step, rejected, epoch=run.epoch())
    run.say(f"continuing from step {found.step} of {run.total_steps} ({found.path})")
    if found.step >= run.total_steps:
        run.say(f"nothing is left to train: this training has {run.total_steps} steps in all")


def _cut_samples(run: Run, step: int) -> None:
    if run.gang.is_main:
        cut_sample_logs(run.config.job_directory / "samples", step)


def _check_plan(run: Run, metadata: dict[str, Any]) -> None:
    if metadata["labels"] != run.labels:
        raise CheckpointMistake(
            f"the checkpoint knows the labels {metadata['labels']}, the data have {run.labels}",
            _new_run_hint(),
        )
    if metadata["plan"] != run.plan.fingerprint:
        raise CheckpointMistake(
            "the checkpoint belongs to other training data, or another seed, globalBatch, maxLength or batch mode: "
            "its steps cannot be continued",
            _new_run_hint(),
        )


def _say_changes(run: Run, metadata: dict[str, Any]) -> None:
    before, now = flatten(metadata["training"]), flatten(run.training.to_document())
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name) and not name.startswith(_HARMLESS):
            run.say(
                f"changed since the checkpoint: spec.training.{name}: {before.get(name)} -> {now.get(name)}"
            )
    if metadata["totalSteps"] != run.total_steps:
        run.say(f"changed since the checkpoint: {metadata['totalSteps']} steps in all -> {run.total_steps}")


def flatten(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _new_run_hint() -> str:
    return "undo the change, or start a new run (`ddpk8s run --fresh`)"
