"""Hooks into the loop, for measurements and experiments that do not belong in it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddpk8s_trainer.run import Run


class Callback:
    """Override what you need; every rank calls every hook at the same step."""

    def before_step(self, run: "Run", step: int) -> None:
        """Run before the forward pass of optimizer step `step` (from 1)."""

    def before_update(self, run: "Run", step: int) -> None:
        """Run when the gradients of all ranks have met, before they are clipped and used."""

    def after_step(self, run: "Run", step: int) -> None:
        """Run when the step is done, logged and, where due, evaluated and saved."""
