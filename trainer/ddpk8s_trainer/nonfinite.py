"""NaN and infinity: said with rank, step and sample ids, then stopped or skipped. Never hidden."""

from ddpk8s_trainer.errors import NonFiniteLoss, TrainingFailed
from ddpk8s_trainer.run import Run
from ddpk8s_trainer.strategy import StepResult

_SHOWN = 8  # sample ids named in a message


def handle_bad_loss(run: Run, step: int, loss: float, own_ids: tuple[int, ...]) -> None:
    """Say which samples made the loss NaN or infinite, and leave the step out, or stop. Collective.

    Args:
        run: The run.
        step: The optimizer step at hand.
        loss: Mean loss of the global batch, not finite.
        own_ids: This rank's own samples whose loss is not finite.

    Raises:
        NonFiniteLoss: the policy is to stop, or too many steps in a row were left out.
    """
    run.strategy.discard()
    culprits = [
        f"rank {rank}: {_name_samples(ids)}" for rank, ids in enumerate(run.gang.gather(own_ids)) if ids
    ]
    _skip_or_stop(run, step, f"the loss is {loss} at step {step} ({'; '.join(culprits)})")


def handle_bad_gradient(run: Run, step: int, result: StepResult) -> None:
    """Count a step that the strategy skipped: an overflow of fp16, which halves the scale, or a bad gradient.

    Raises:
        TrainingFailed: fp16 overflows whatever the scale.
        NonFiniteLoss: outside fp16, as for the loss.
    """
    if not result.skipped:
        run.state.skipped_in_a_row = 0
        return
    scale = run.strategy.loss_scale
    if scale is None:
        _skip_or_stop(
            run, step, f"the gradient is {result.grad_norm} at step {step}, though the loss is finite"
        )
        return
    run.state.skipped_steps += 1
    run.state.skipped_in_a_row += 1
    run.say(f"step {step}: the gradient overflowed fp16; skipped, the loss scale is now {scale:g}")
    if scale < 1.0:
        raise TrainingFailed(
            f"fp16 overflowed in {run.state.skipped_in_a_row} steps in a row, down to a loss scale of {scale:g}",
            "set spec.training.precision.type: bf16 (models that were pretrained in bf16 often overflow fp16)",
            step=step,
        )


def _skip_or_stop(run: Run, step: int, problem: str) -> None:
    policy = run.training.non_finite
    run.state.skipped_in_a_row += 1
    if policy.policy == "skip" and run.state.skipped_in_a_row <= policy.max_skips:
        run.state.skipped_steps += 1
        run.say(f"{problem}; skipped ({run.state.skipped_steps} so far)")
        return
    if policy.policy == "skip":
        problem += (
            f"; {run.state.skipped_in_a_row} steps in a row, and nonFinite.maxSkips is {policy.max_skips}"
        )
        hint = "look at the samples; lower the learning rate"
    else:
        hint = "look at the samples; lower the learning rate; or set spec.training.nonFinite.policy: skip"
    raise NonFiniteLoss(problem, hint, step=step)


def _name_samples(ids: tuple[int, ...]) -> str:
    names = [str(i) for i in ids[:_SHOWN]]
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"sample{'s' if len(ids) > 1 else ''} {', '.join(names)}{more}"
