"""How a training ends when it does not end well.

    TrainerError
    ├── ConfigurationMistake (78)   a setting that cannot work
    │   ├── DataMistake             files, columns, labels, encodings
    │   ├── ModelMistake            model and tokenizer
    │   └── CheckpointMistake       a checkpoint directory that cannot be used
    ├── TrainingFailed (1)
    │   └── NonFiniteLoss           NaN or infinity
    └── Stopped (143)               asked to stop, state saved

Exit code 78 is never retried: the same mistake would be made again.
"""


class TrainerError(Exception):
    """An end with a reason; `message` says what, `hint` how to mend it."""

    exit_code = 1
    reason = "TrainerError"
    repeats = False  # whether a restart would come to the same, since a resumed run repeats itself bit by bit

    def __init__(self, message: str, hint: str | None = None, step: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.step = step
        self.secondary = False  # raised here only because another rank said so

    def __init_subclass__(cls) -> None:
        cls.reason = cls.__name__

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class ConfigurationMistake(TrainerError):
    """A setting that cannot work."""

    exit_code = 78


class DataMistake(ConfigurationMistake):
    """Files, columns, labels or encodings are not what the configuration says."""


class ModelMistake(ConfigurationMistake):
    """Model and tokenizer do not load, or do not fit each other or the data."""


class CheckpointMistake(ConfigurationMistake):
    """The checkpoint directory cannot be used, or its state does not fit this configuration."""


class TrainingFailed(TrainerError):
    """Training cannot go on."""


class NonFiniteLoss(TrainingFailed):
    """The loss became NaN or infinite."""

    repeats = True


class Stopped(TrainerError):
    """Asked to stop; the state is saved."""

    exit_code = 143
