"""The loop of accelerate's users at its best: grouped by length, dynamic padding, fused AdamW."""

from typing import Any

import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.utils import DataLoaderConfiguration, DistributedDataParallelKwargs  # type: ignore[import-untyped]
from torch import nn
from torch.utils.data import DataLoader
from transformers import DataCollatorWithPadding, get_linear_schedule_with_warmup

from benchmarks.contenders.minimal import PadToLongest
from benchmarks.sampling import sampler_by_length
from benchmarks.workload import OnStep, Work


def train(work: Work, on_step: OnStep) -> nn.Module:
    """Train and return the model."""
    training, module = work.training, work.new_model()
    tokenizer, samples = work.load_tokenizer(), work.samples()
    accelerator = Accelerator(
        cpu=True,
        step_scheduler_with_optimizer=False,
        dataloader_config=DataLoaderConfiguration(dispatch_batches=False, split_batches=False),
        kwargs_handlers=[
            DistributedDataParallelKwargs(broadcast_buffers=False, gradient_as_bucket_view=True)
        ],
    )
    # Grouped for both processes together: their batches come from the same stretch of lengths.
    sampler = sampler_by_length(work, work.options.get("group", work.training.batch.global_batch))
    minimal = work.options.get("collator", "minimal") == "minimal"
    loader: Any = DataLoader(
        samples,  # type: ignore[arg-type]
        batch_size=work.per_device_batch,
        sampler=sampler,
        collate_fn=PadToLongest(tokenizer.pad_token_id) if minimal else DataCollatorWithPadding(tokenizer),
    )
    optimizer = torch.optim.AdamW(
        module.parameters(),
        lr=training.optimizer.learning_rate,
        weight_decay=training.optimizer.weight_decay,
        fused=True,
    )
    scheduler = get_linear_schedule_with_warmup(optimizer, work.warmup_steps, work.total_steps)
    model, optimizer, loader = accelerator.prepare(module, optimizer, loader)
    torch.manual_seed(training.seed + accelerator.process_index)
    step = 0
    on_step(step)
    for _ in range(work.epochs):
        for batch in loader:
            loss = model(**batch).loss
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), training.optimizer.max_grad_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            on_step(step)
    return module
