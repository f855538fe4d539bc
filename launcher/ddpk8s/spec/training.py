"""The `training` section: what the bundled trainer does. It is the trainer's own configuration."""

from typing import Literal

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.data import Batch, Data
from ddpk8s.spec.model import BuildTokenizer, Model
from ddpk8s.spec.values import Duration

__all__ = [
    "Batch",
    "BuildTokenizer",
    "Checkpoint",
    "Data",
    "Evaluation",
    "Metrics",
    "Model",
    "NonFinite",
    "Optimizer",
    "Output",
    "Precision",
    "Schedule",
    "Training",
]


class Optimizer(Section):
    """AdamW and gradient clipping."""

    name: Literal["adamw"] = field("The optimizer.", "adamw")
    learning_rate: float = field(
        "Peak learning rate; not scaled with the number of processes.", 5e-5, gt=0, le=10, example=5e-5
    )
    weight_decay: float = field("Decoupled weight decay; biases and norms are left out.", 0.01, ge=0, lt=1)
    beta1: float = field("Decay of the first moment.", 0.9, ge=0, lt=1)
    beta2: float = field("Decay of the second moment.", 0.999, ge=0, lt=1)
    epsilon: float = field("Term added to the denominator.", 1e-8, gt=0, le=1e-2)
    max_grad_norm: float | None = field(
        "Clip the gradient's norm to this; null does not clip.", 1.0, gt=0, example=1.0
    )
    fused: bool | None = field("Use the fused kernel; by default where torch has one.", None)


class Schedule(Section):
    """Learning rate over optimizer steps: warm-up, then `type`."""

    type: Literal["linear", "cosine", "constant", "wsd"] = field(
        "What follows the warm-up: a line or a cosine down to the end, constant, or `wsd` (constant, "
        "then a line down).",
        "linear",
    )
    warmup_steps: int | None = field(
        "Steps of linear warm-up. Either this or `warmupRatio`.",
        None,
        unit="optimizer steps",
        ge=0,
        example=100,
    )
    warmup_ratio: float | None = field("Warm-up as a share of all steps.", None, ge=0, lt=1, example=0.06)
    decay_ratio: float = field("Share of all steps in which `wsd` decays.", 0.2, gt=0, le=1)
    min_ratio: float = field("Learning rate at the end, as a share of the peak.", 0.0, ge=0, le=1)


class Precision(Section):
    """Number formats. Parameters and optimizer are always fp32; autocast computes in `type`."""

    type: Literal["fp32", "bf16", "fp16"] = field("Format of the computation.", "fp32", example="bf16")
    initial_loss_scale: float = field("First loss scale of fp16.", 65536.0, gt=0)
    loss_scale_growth_interval: int = field(
        "Steps without overflow before the scale doubles.", 2000, unit="optimizer steps", ge=1
    )


class Evaluation(Section):
    """Evaluation on the validation data, exact for any number of processes."""

    every_steps: int | None = field(
        "Evaluate each so many steps; absent, at the end of each epoch.", None, unit="optimizer steps", ge=1
    )
    metric: Literal["accuracy", "f1", "loss"] = field(
        "What makes a model the best one. `f1` is the macro average.", "accuracy"
    )
    tokens_per_device: int | None = field(
        "Token budget of an evaluation batch; by default that of training.", None, unit="tokens", ge=16
    )


class Checkpoint(Section):
    """Where and when the state is saved."""

    directory: str = field(
        "Directory of checkpoints; the job's own folder is made in it.",
        "/checkpoints",
        example="/checkpoints",
    )
    interval: Duration | None = field(
        "Save when this much time went by since the last save; null saves by steps only.", "10m"
    )
    every_steps: int | None = field(
        "Save each so many steps.", None, unit="optimizer steps", ge=1, example=500
    )
    keep: int = field("Newest checkpoints kept; the best one is kept besides.", 2, unit="checkpoints", ge=1)
    asynchronous: bool = field("Write in the background while training goes on.", True)


class NonFinite(Section):
    """What happens when the loss is NaN or infinite."""

    policy: Literal["stop", "skip"] = field(
        "`stop` ends the training; `skip` leaves the step out and goes on.", "stop"
    )
    max_skips: int = field("`skip` gives up after so many steps in a row.", 10, unit="optimizer steps", ge=1)


class Metrics(Section):
    """What is measured and where it goes. JSON Lines are always written."""

    log_every_steps: int = field("A line of metrics each so many steps.", 10, unit="optimizer steps", ge=1)
    tensorboard: bool = field("Write TensorBoard event files.", True)
    sample_log: bool = field(
        "Each rank writes the ids of its samples of every step (for audits; small data).", False
    )


class Output(Section):
    """What is left when training ends."""

    export: bool = field(
        "Write the model as a Hugging Face directory, re-read and compared in a fresh process.", True
    )
    model: Literal["best", "last"] = field(
        "Which weights are exported; without validation data the last.", "best"
    )
    report: bool = field("Write a one-page HTML report.", True)


class Training(Section):
    """The bundled trainer."""

    task: Literal["sequence-classification"] = field("What is learned.", "sequence-classification")
    strategy: Literal["ddp"] = field("How processes share the work.", "ddp")
    model: Model = field("The model.")
    data: Data = field("The samples.")
    batch: Batch = field("Global batch and micro-batches.", Batch)
    epochs: int | None = field(
        "Passes over the training data; 3 when `maxSteps` is absent too.",
        None,
        unit="epochs",
        ge=1,
        example=3,
    )
    max_steps: int | None = field(
        "Optimizer steps; instead of, or as a bound on, `epochs`.", None, unit="optimizer steps", ge=1
    )
    precision: Precision = field("Number formats.", Precision)
    optimizer: Optimizer = field("AdamW and clipping.", Optimizer)
    schedule: Schedule = field("Learning rate.", Schedule)
    gradient_checkpointing: bool = field(
        "Recompute activations in the backward pass: less memory, a third more time.", False
    )
    compile: bool = field("Compile the model by `torch.compile`.", False)
    seed: int = field("Seed of weights, order and dropout.", 42, ge=0, lt=2**32)
    deterministic: bool = field("Use deterministic kernels only (slower on GPUs).", False)
    evaluation: Evaluation = field("Evaluation.", Evaluation)
    checkpoint: Checkpoint = field("Checkpoints.", Checkpoint)
    resume: Literal["run", "auto", "never"] = field(
        "`run` continues from checkpoints of this very run; `auto` from those of any run of this name; "
        "`never` starts anew.",
        "run",
    )
    non_finite: NonFinite = field("What to do about NaN.", NonFinite)
    metrics: Metrics = field("Metrics.", Metrics)
    output: Output = field("Model and report.", Output)

    @property
    def num_epochs(self) -> int | None:
        """Passes over the data: `epochs`, else 3, or None when only `max_steps` bounds the training."""
        return self.epochs if self.epochs or self.max_steps else 3
