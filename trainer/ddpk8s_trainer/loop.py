"""The training loop, top to bottom. Every rank runs it in step with the others."""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from ddpk8s_trainer.beats import beat
from ddpk8s_trainer.errors import Stopped
from ddpk8s_trainer.evaluate import as_event, evaluate
from ddpk8s_trainer.nonfinite import handle_bad_gradient, handle_bad_loss
from ddpk8s_trainer.optim import learning_rate_factor
from ddpk8s_trainer.run import Run
from ddpk8s_trainer.totals import Totals


def train(run: Run) -> None:
    """Train until the last step; evaluate, save and log on the way.

    Raises:
        Stopped: some rank was asked to stop; all stop after the same step, with a complete checkpoint.
        NonFiniteLoss: as `spec.training.nonFinite` says.
    """
    if run.gang.sum([float(run.stop.requested)])[0]:
        raise Stopped(f"stopped before step {run.state.step + 1}", step=run.state.step)
    run.recorder.phase("training")
    while run.state.step < run.total_steps:
        step = run.state.step + 1
        for callback in run.callbacks:
            callback.before_step(run, step)
        totals = _forward_backward(run, step)
        learning_rate = run.learning_rate * learning_rate_factor(run.schedule, step, run.total_steps)
        norm = math.nan
        if totals.bad_ranks:
            handle_bad_loss(run, step, totals.loss, totals.bad_ids)
        else:
            for callback in run.callbacks:
                callback.before_update(run, step)
            result = run.strategy.step(learning_rate)
            norm = result.grad_norm
            handle_bad_gradient(run, step, result)
        run.timer.lap("optimizer")

        run.state.step = step
        beat(step)
        run.log_step(totals, learning_rate, norm)
        best = _evaluate_if_due(run)
        last = step == run.total_steps
        if totals.stop_ranks and not last:
            run.save(best=best, wait=True)
            raise Stopped(f"stopped after step {step} of {run.total_steps}, state saved", step=step)
        if best or last or totals.save_due or run.saves_at(step):
            run.save(best=best, wait=last)
        run.collect_saves()
        for callback in run.callbacks:
            callback.after_step(run, step)


def _forward_backward(run: Run, step: int) -> Totals:
    """Compute the gradient of the mean loss over the global batch.

    Each sample's loss is weighted by world size / global samples: DDP averages over ranks, so the sum over all ranks
    and micro-batches is exactly the mean over the global batch, however it was dealt out.
    """
    epoch, index = run.plan.locate(step - 1)
    global_ids = run.plan.global_batch(epoch, index)
    micro_batches = run.plan.rank_batches(epoch, index, run.gang.rank)
    run.sample_log.write(step, micro_batches)
    samples = len(global_ids)
    weight = run.gang.world_size / samples
    loss_sum = torch.zeros((), dtype=torch.float64, device=run.gang.device)
    parts, tokens, padded = [], 0, 0
    for number, ids in enumerate(micro_batches, start=1):
        # A rank that got nothing still takes part: one sample that weighs nothing.
        batch = run.collate(ids if len(ids) else global_ids[:1])
        labels = batch.pop("labels")
        tokens += run.count_tokens(ids)
        padded += batch["input_ids"].numel()
        run.timer.lap("data")
        beat()
        with run.strategy.micro_step(last=number == len(micro_batches)):
            losses = functional.cross_entropy(run.strategy.forward(batch), labels, reduction="none")
            if not len(ids):
                losses = losses * 0.0
            run.timer.lap("forward")
            run.strategy.backward(losses.sum() * weight)
        run.timer.lap("backward")
        loss_sum += losses.detach().double().sum()
        parts.append((ids, losses.detach()))
    own_sum = loss_sum.item()
    bad = not math.isfinite(own_sum)
    save_due = run.gang.is_main and run.save_clock.is_due()
    agreed = run.gang.sum(
        [own_sum, float(bad), float(run.stop.requested), float(save_due), float(tokens), float(padded)]
    )
    run.timer.lap("synchronize")
    bad_ids = _not_finite(parts) if agreed[1] else ()
    return Totals(
        loss=agreed[0] / samples,
        samples=samples,
        tokens=int(agreed[4]),
        padded_tokens=int(agreed[5]),
        bad_ranks=int(agreed[1]),
        stop_ranks=int(agreed[2]),
        save_due=bool(agreed[3]),
        bad_ids=bad_ids,
    )


def _not_finite(parts: list[tuple[npt.NDArray[np.int64], torch.Tensor]]) -> tuple[int, ...]:
    """Return the ids of samples whose loss is not finite, from (ids, losses) of each micro-batch."""
    return tuple(
        int(sample)
        for ids, losses in parts
        if len(ids)
        for sample, loss in zip(ids, losses.tolist(), strict=True)
        if not math.isfinite(loss)
    )


def _evaluate_if_due(run: Run) -> bool:
    """Evaluate where it is due; return whether this is the best model so far."""
    if not run.evaluates_at(run.state.step):
        return False
    run.recorder.phase("evaluating")
    run.timer.lap("other")
    run.strategy.module.eval()
    result = evaluate(run.predict, run.validation_batches, run.collate_validation, len(run.labels), run.gang)
    run.strategy.module.train()
    metric = run.training.evaluation.metric
    best = result.is_better_than(run.state.best_value, metric)
    if best:
        run.state.best_value, run.state.best_step = result.value(metric), run.state.step
    run.state.evaluated_step, run.state.last_value = run.state.step, result.value(metric)
    run.timer.lap("evaluation")
    run.recorder.evaluation(run.state.step, run.epoch(), as_event(result), labels=run.labels, best=best)
    run.recorder.phase("training")
    return best
