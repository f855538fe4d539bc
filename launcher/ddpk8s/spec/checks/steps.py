"""Steps against each other: warm-up, evaluation, checkpoints; and settings that others switch off."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from ddpk8s.spec.base import Section
from ddpk8s.spec.problems import Problem, error, warning
from ddpk8s.spec.shape import fields_of
from ddpk8s.spec.training import Training
from ddpk8s.spec.values import show

_T = "spec.training"


def check_steps(training: Training) -> Iterator[Problem]:
    """Yield problems of schedule, data, evaluation, checkpoints and precision."""
    yield from _check_schedule(training)
    yield from _check_data(training)
    yield from _check_evaluation(training)
    yield from _check_checkpoint(training)
    yield from _check_idle_settings(training)


def _check_schedule(training: Training) -> Iterator[Problem]:
    schedule, last = training.schedule, training.max_steps
    warmup, related = f"{_T}.schedule.warmupSteps", [f"{_T}.maxSteps", f"{_T}.schedule"]
    if schedule.warmup_steps is not None and schedule.warmup_ratio is not None:
        text = f"and {_T}.schedule.warmupRatio are both given, but exclude each other"
        yield error(warmup, text, "remove one of them", related)
        return
    if schedule.warmup_steps and last is not None and schedule.warmup_steps >= last:
        text = f"is {schedule.warmup_steps} but {_T}.maxSteps is {last}, so the peak is never reached"
        yield error(warmup, text, "lower warmupSteps or raise maxSteps", related)
    elif schedule.type == "wsd":
        ratio = schedule.warmup_ratio or (schedule.warmup_steps or 0) / (last or float("inf"))
        if ratio + schedule.decay_ratio > 1:
            text = (
                f"is {schedule.decay_ratio:g} and the warm-up takes {ratio:g} of all steps: above 1 together"
            )
            yield error(f"{_T}.schedule.decayRatio", text, "lower one of them", related)


def _check_data(training: Training) -> Iterator[Problem]:
    data = training.data
    columns = {
        "textColumn": data.text_column,
        "textPairColumn": data.text_pair_column,
        "labelColumn": data.label_column,
    }
    seen: dict[str, str] = {}
    for key, column in columns.items():
        if column is None:
            continue
        if column in seen:
            other = f"{_T}.data.{seen[column]}"
            text = f"is {show(column)}, as is {other}"
            yield error(f"{_T}.data.{key}", text, "each must name a column of its own", [other])
        seen.setdefault(column, key)
    if data.validation is not None and data.validation == data.train:
        text = f"is the same as {_T}.data.train, so evaluation tells nothing about new samples"
        yield warning(f"{_T}.data.validation", text, None, [f"{_T}.data.train"])


def _check_evaluation(training: Training) -> Iterator[Problem]:
    evaluation, related = training.evaluation, [f"{_T}.data.validation"]
    if training.data.validation is None:
        for key in _changed(evaluation):
            text = f"is set but there is no {_T}.data.validation to evaluate on"
            yield error(f"{_T}.evaluation.{key}", text, "set validation, or remove `evaluation`", related)
    elif evaluation.every_steps and training.max_steps and evaluation.every_steps > training.max_steps:
        text = f"is {evaluation.every_steps} but {_T}.maxSteps is {training.max_steps}"
        text += ", so only the end is evaluated"
        yield warning(f"{_T}.evaluation.everySteps", text, None, [f"{_T}.maxSteps"])


def _check_checkpoint(training: Training) -> Iterator[Problem]:
    checkpoint, last = training.checkpoint, training.max_steps
    if checkpoint.interval is not None and checkpoint.interval <= timedelta(0):
        hint = "write for example 10m, or null to save by everySteps only"
        yield error(f"{_T}.checkpoint.interval", "is 0s, but must be more", hint)
    if checkpoint.interval is not None:
        return
    every = checkpoint.every_steps
    if every is None:
        text = f"is null and {_T}.checkpoint.everySteps is not set: nothing is saved before the end or a stop"
    elif last is not None and every > last:
        text = (
            f"is null and {_T}.checkpoint.everySteps is {every}, more than {_T}.maxSteps, which is {last}: "
        )
        text += "nothing is saved before the end or a stop"
    else:
        return
    hint = "set interval or everySteps, or a failure costs all the work"
    yield warning(f"{_T}.checkpoint.interval", text, hint, [f"{_T}.checkpoint.everySteps", f"{_T}.maxSteps"])


def _check_idle_settings(training: Training) -> Iterator[Problem]:
    """Settings that another one switches off: said, but no reason to stop."""
    schedule, kind = training.schedule.type, training.precision.type
    idle: list[tuple[str, Section, set[str], str]] = []
    if schedule != "wsd":
        idle.append(("schedule", training.schedule, {"decayRatio"}, f"type is {schedule}"))
    if schedule == "constant":
        idle.append(("schedule", training.schedule, {"minRatio"}, "type is constant"))
    if kind != "fp16":
        keys = {"initialLossScale", "lossScaleGrowthInterval"}
        idle.append(("precision", training.precision, keys, f"type is {kind}"))
    if training.non_finite.policy == "stop":
        idle.append(("nonFinite", training.non_finite, {"maxSkips"}, "policy is stop"))
    for section, values, keys, why in idle:
        for key in keys & set(_changed(values)):
            text = f"is set but {_T}.{section}.{why}, where it means nothing"
            yield warning(f"{_T}.{section}.{key}", text, None, [f"{_T}.{section}.{why.split()[0]}"])


def _changed(section: Section) -> dict[str, Any]:
    """Return the fields of a section that differ from their defaults."""
    values = section.model_dump(by_alias=True)
    defaults = type(section)().model_dump(by_alias=True)
    return {key: values[key] for key in fields_of(type(section)) if values[key] != defaults[key]}
