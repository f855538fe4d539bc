"""The arithmetic of batch, budgets and steps."""

from collections.abc import Callable

import pytest

Judge = Callable[..., object]
B, T = "spec.training.batch", "spec.training"


@pytest.mark.parametrize(
    ("sets", "error", "hint"),
    [
        ([f"{B}.globalBatch=3", "spec.topology={nnodes: 2, nprocPerNode: 2}"],
            f"{B}.globalBatch is 3 but the job has 4 processes, and each needs a sample",
            "set it to 4 or more, or lower spec.topology.nnodes or nprocPerNode"),
        ([f"{B}={{mode: fixed, globalBatch: 64, microBatch: 8, gradientAccumulationSteps: 2}}",
            "spec.topology={nnodes: 2, nprocPerNode: 4}"],
            f"{B}.globalBatch is 64 but microBatch 8 x gradientAccumulationSteps 2 x 8 processes = 128",
            "set globalBatch: 128, or leave gradientAccumulationSteps out"),
        ([f"{B}={{mode: fixed, globalBatch: 50, microBatch: 8}}", "spec.topology.nprocPerNode=2"],
            f"{B}.globalBatch is 50, no multiple of microBatch 8 x 2 processes = 16",
            "set globalBatch: 48 or 64, or mode: tokenBudget, which takes any"),
        ([f"{B}={{mode: fixed, globalBatch: 4, gradientAccumulationSteps: 8}}"],
            f"{B}.globalBatch is 4, no multiple of gradientAccumulationSteps 8 x 1 process = 8",
            "set globalBatch: 8, or mode: tokenBudget, which takes any"),
        ([f"{B}={{mode: fixed, globalBatch: 7}}", "spec.topology.nprocPerNode=2"],
            f"{B}.globalBatch is 7, no multiple of 2 processes",
            "set globalBatch: 6 or 8, or mode: tokenBudget, which takes any"),
        ([f"{B}.microBatch=8"],
            f"{B}.microBatch is set but {B}.mode is tokenBudget, where it means nothing",
            "remove it, or set mode: fixed"),
        ([f"{B}.gradientAccumulationSteps=2"],
            f"{B}.gradientAccumulationSteps is set but {B}.mode is tokenBudget, where it means nothing",
            "remove it, or set mode: fixed"),
        ([f"{B}={{mode: fixed, tokensPerDevice: 512}}"],
            f"{B}.tokensPerDevice is set but {B}.mode is fixed, where it means nothing",
            "remove it, or set mode: tokenBudget"),
        ([f"{B}={{mode: fixed, groupByLength: false}}"],
            f"{B}.groupByLength is set but {B}.mode is fixed, where it means nothing",
            "remove it, or set mode: tokenBudget"),
        ([f"{B}.tokensPerDevice=128"],
            f"{B}.tokensPerDevice is 128 but {T}.data.maxLength is 256, and one sample must fit",
            "set tokensPerDevice: 256 or more, or lower maxLength"),
        ([f"{T}.evaluation.tokensPerDevice=128"],
            f"{T}.evaluation.tokensPerDevice is 128 but {T}.data.maxLength is 256, and one sample must fit",
            "set tokensPerDevice: 256 or more, or lower maxLength"),
        ([f"{T}.schedule={{warmupSteps: 5, warmupRatio: 0.1}}"],
            f"{T}.schedule.warmupSteps and {T}.schedule.warmupRatio are both given, but exclude each other",
            "remove one of them"),
        ([f"{T}.schedule.warmupSteps=100", f"{T}.maxSteps=100"],
            f"{T}.schedule.warmupSteps is 100 but {T}.maxSteps is 100, so the peak is never reached",
            "lower warmupSteps or raise maxSteps"),
        ([f"{T}.schedule={{type: wsd, warmupRatio: 0.3, decayRatio: 0.8}}"],
            f"{T}.schedule.decayRatio is 0.8 and the warm-up takes 0.3 of all steps: above 1 together",
            "lower one of them"),
        ([f"{T}.schedule={{type: wsd, warmupSteps: 90}}", f"{T}.maxSteps=100"],
            f"{T}.schedule.decayRatio is 0.2 and the warm-up takes 0.9 of all steps: above 1 together",
            "lower one of them"),
        ([f"{T}.data.labelColumn=text"],
            f"{T}.data.labelColumn is 'text', as is {T}.data.textColumn", "each must name a column of its own"),
        ([f"{T}.data.textPairColumn=text"],
            f"{T}.data.textPairColumn is 'text', as is {T}.data.textColumn", "each must name a column of its own"),
        ([f"{T}.data.validation=null", f"{T}.evaluation.everySteps=5"],
            f"{T}.evaluation.everySteps is set but there is no {T}.data.validation to evaluate on",
            "set validation, or remove `evaluation`"),
        ([f"{T}.checkpoint.interval=0s"],
            f"{T}.checkpoint.interval is 0s, but must be more",
            "write for example 10m, or null to save by everySteps only"),
    ],
)  # fmt: skip
def test_numbers_are_refused_when_they_do_not_add_up(
    judge: Judge, sets: list[str], error: str, hint: str
) -> None:
    verdict = judge(*sets)
    assert verdict.errors == [error]
    assert verdict.hints == [hint]


@pytest.mark.parametrize(
    ("sets", "warning"),
    [
        ([f"{T}.checkpoint.interval=null"],
            f"{T}.checkpoint.interval is null and {T}.checkpoint.everySteps is not set: "
            "nothing is saved before the end or a stop"),
        ([f"{T}.checkpoint={{interval: null, everySteps: 50}}", f"{T}.maxSteps=20"],
            f"{T}.checkpoint.interval is null and {T}.checkpoint.everySteps is 50, "
            f"more than {T}.maxSteps, which is 20: "
            "nothing is saved before the end or a stop"),
        ([f"{T}.evaluation.everySteps=50", f"{T}.maxSteps=20"],
            f"{T}.evaluation.everySteps is 50 but {T}.maxSteps is 20, so only the end is evaluated"),
        ([f"{T}.data.validation=/data/train.jsonl"],
            f"{T}.data.validation is the same as {T}.data.train, so evaluation tells nothing about new samples"),
        ([f"{T}.schedule.decayRatio=0.3"],
            f"{T}.schedule.decayRatio is set but {T}.schedule.type is linear, where it means nothing"),
        ([f"{T}.schedule={{type: constant, minRatio: 0.1}}"],
            f"{T}.schedule.minRatio is set but {T}.schedule.type is constant, where it means nothing"),
        ([f"{T}.precision.initialLossScale=1024"],
            f"{T}.precision.initialLossScale is set but {T}.precision.type is fp32, where it means nothing"),
        ([f"{T}.nonFinite.maxSkips=3"],
            f"{T}.nonFinite.maxSkips is set but {T}.nonFinite.policy is stop, where it means nothing"),
    ],
)  # fmt: skip
def test_setting_is_warned_of_when_it_has_no_effect(judge: Judge, sets: list[str], warning: str) -> None:
    verdict = judge(*sets)
    assert verdict.errors == []
    assert verdict.warnings == [warning]


@pytest.mark.parametrize(
    "sets",
    [
        [f"{B}={{mode: fixed, globalBatch: 64, microBatch: 8, gradientAccumulationSteps: 4}}",
            "spec.topology.nprocPerNode=2"],
        [f"{B}={{mode: fixed, globalBatch: 64}}", "spec.topology.nprocPerNode=2"],
        [f"{B}={{mode: fixed, globalBatch: 64, tokensPerDevice: 8192, groupByLength: true}}"],
        [f"{B}={{globalBatch: 7}}", "spec.topology.nprocPerNode=7"],
        [f"{T}.schedule={{type: wsd, warmupRatio: 0.1, decayRatio: 0.9}}"],
        [f"{T}.schedule.warmupSteps=99", f"{T}.maxSteps=100"],
        [f"{T}.precision={{type: fp16, initialLossScale: 8}}"],
        [f"{T}.nonFinite={{policy: skip, maxSkips: 3}}"],
        [f"{T}.checkpoint={{interval: null, everySteps: 50}}"],
        [f"{T}.data.validation=null", f"{T}.output.model=best"],
        [f"{T}.data.maxLength=8192"],
    ],
)  # fmt: skip
def test_nothing_is_said_when_numbers_add_up(judge: Judge, sets: list[str]) -> None:
    verdict = judge(*sets)
    assert (verdict.errors, verdict.warnings) == ([], [])
