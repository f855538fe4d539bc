"""HF Trainer as fast as its own switches make it: grouped by length, dynamic padding, fused AdamW, no extras."""

from typing import Any

from torch import nn
from transformers import DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments

from benchmarks.contenders.minimal import PadToLongest
from benchmarks.sampling import sampler_by_length
from benchmarks.workload import OnStep, Work


def train(work: Work, on_step: OnStep) -> nn.Module:
    """Train and return the model."""
    module = work.new_model()
    tokenizer = work.load_tokenizer()
    minimal = work.options.get("collator", "minimal") == "minimal"
    trainer = _Trainer(
        work,
        model=module,
        args=_arguments(work),
        train_dataset=work.samples(),
        data_collator=PadToLongest(tokenizer.pad_token_id) if minimal else DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
        callbacks=[_Hook(on_step)],
    )
    trainer.train()
    return module


def _arguments(work: Work) -> TrainingArguments:
    training = work.training
    settings: dict[str, Any] = {
        "per_device_train_batch_size": work.per_device_batch,
        "num_train_epochs": work.epochs,
        "learning_rate": training.optimizer.learning_rate,
        "weight_decay": training.optimizer.weight_decay,
        "max_grad_norm": training.optimizer.max_grad_norm,
        "lr_scheduler_type": "linear",
        "warmup_steps": work.warmup_steps,
        "seed": training.seed,
        "optim": "adamw_torch_fused",
        "train_sampling_strategy": "group_by_length",
        "save_strategy": "no",
        "eval_strategy": "no",
        "logging_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "ddp_backend": "gloo",
        "ddp_find_unused_parameters": False,
        "ddp_broadcast_buffers": False,
        "dataloader_pin_memory": False,
        "average_tokens_across_devices": False,
    }
    return TrainingArguments(
        output_dir="hugging_face",
        **settings | work.options.get("arguments", {}),
    )


class _Trainer(Trainer):  # type: ignore[misc]
    """The Trainer; only in blocks its sampler is replaced, by one that picks from the very same batches."""

    def __init__(self, work: Work, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._work = work

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        if self._work.block_steps and self.args.train_sampling_strategy == "group_by_length":
            return sampler_by_length(self._work, self.args.train_batch_size)
        return super()._get_train_sampler(train_dataset)


class _Hook(TrainerCallback):  # type: ignore[misc]
    def __init__(self, on_step: OnStep) -> None:
        self._on_step = on_step

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        self._on_step(0)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        self._on_step(state.global_step)
