"""How processes share the work. Today DDP; others will stand beside it behind the same protocol."""

from ddpk8s_trainer.strategy.base import StepResult, Strategy
from ddpk8s_trainer.strategy.ddp import DDPStrategy

__all__ = ["DDPStrategy", "StepResult", "Strategy"]
