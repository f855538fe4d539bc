"""What a run measures and where it goes: JSON Lines, TensorBoard and the progress line."""

from ddpk8s_trainer.metrics.figures import RunFacts, StepFigures
from ddpk8s_trainer.metrics.recorder import MainRecorder, Recorder, open_recorder
from ddpk8s_trainer.metrics.timer import StepTimer

__all__ = [
    "MainRecorder",
    "Recorder",
    "RunFacts",
    "StepFigures",
    "StepTimer",
    "open_recorder",
]
