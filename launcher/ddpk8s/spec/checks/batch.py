"""The arithmetic of the batch: global batch, micro-batches, accumulation, processes, token budgets."""

from collections.abc import Iterator

from ddpk8s.spec.data import Batch
from ddpk8s.spec.problems import Problem, error
from ddpk8s.spec.shape import fields_of
from ddpk8s.spec.training import Training
from ddpk8s.spec.values import amount

_BATCH = "spec.training.batch"
_WORLD = ["spec.topology", "spec.resources.gpu"]


def check_batch(training: Training, world_size: int) -> Iterator[Problem]:
    """Yield problems of `training.batch` for so many processes."""
    batch = training.batch
    yield from _check_fields_of_other_mode(batch)
    if batch.global_batch < world_size:
        yield error(
            f"{_BATCH}.globalBatch",
            f"is {batch.global_batch} but the job has {amount(world_size, 'processes')}, and each needs a sample",
            f"set it to {world_size} or more, or lower spec.topology.nnodes or nprocPerNode",
            _WORLD,
        )
    elif batch.mode == "fixed":
        yield from _check_fixed(batch, world_size)
    yield from _check_budgets(training)


def _check_fields_of_other_mode(batch: Batch) -> Iterator[Problem]:
    others = (
        ("tokensPerDevice", "groupByLength")
        if batch.mode == "fixed"
        else ("microBatch", "gradientAccumulationSteps")
    )
    right = "tokenBudget" if batch.mode == "fixed" else "fixed"
    values = batch.to_document()
    for key in others:
        if values[key] != fields_of(Batch)[key].default:
            hint = f"remove it, or set mode: {right}"
            text = f"is set but {_BATCH}.mode is {batch.mode}, where it means nothing"
            yield error(f"{_BATCH}.{key}", text, hint, [f"{_BATCH}.mode"])


def _check_fixed(batch: Batch, world_size: int) -> Iterator[Problem]:
    total, micro, steps = batch.global_batch, batch.micro_batch, batch.gradient_accumulation_steps
    field = f"{_BATCH}.globalBatch"
    related = [*_WORLD, f"{_BATCH}.microBatch", f"{_BATCH}.gradientAccumulationSteps"]
    unit = world_size * (micro or 1) * (steps or 1)
    factors = f"microBatch {micro} x " if micro else ""
    factors += f"gradientAccumulationSteps {steps} x " if steps else ""
    if micro and steps:
        if total != unit:
            text = f"is {total} but {factors}{amount(world_size, 'processes')} = {unit}"
            yield error(
                field, text, f"set globalBatch: {unit}, or leave gradientAccumulationSteps out", related
            )
    elif total % unit:
        lower, upper = total // unit * unit, (total // unit + 1) * unit
        text = f"is {total}, no multiple of {factors}{amount(world_size, 'processes')}{f' = {unit}' if factors else ''}"
        near = f"{lower} or {upper}" if lower else f"{upper}"
        yield error(field, text, f"set globalBatch: {near}, or mode: tokenBudget, which takes any", related)


def _check_budgets(training: Training) -> Iterator[Problem]:
    longest = training.data.max_length
    budgets = [("evaluation", training.evaluation.tokens_per_device)]
    if training.batch.mode == "tokenBudget":
        budgets.insert(0, ("batch", training.batch.tokens_per_device))
    for section, budget in budgets:
        if budget is not None and budget < longest:
            yield error(
                f"spec.training.{section}.tokensPerDevice",
                f"is {budget} but spec.training.data.maxLength is {longest}, and one sample must fit",
                f"set tokensPerDevice: {longest} or more, or lower maxLength",
                ["spec.training.data.maxLength", "spec.training.batch.mode"],
            )
