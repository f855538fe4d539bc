"""The loop of the tutorials: every sample padded to the full length, batches of a fixed number of samples."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from transformers import get_linear_schedule_with_warmup

from benchmarks.workload import OnStep, Work


def train(work: Work, on_step: OnStep) -> nn.Module:
    """Train and return the model."""
    dist.init_process_group("gloo")
    training = work.training
    dataset = _padded(work)
    sampler: DistributedSampler[TensorDataset] = DistributedSampler(dataset, seed=training.seed)
    loader = DataLoader(dataset, batch_size=work.per_device_batch, sampler=sampler)
    module = work.new_model()
    torch.manual_seed(training.seed + dist.get_rank())
    model = DistributedDataParallel(module)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=training.optimizer.learning_rate, weight_decay=training.optimizer.weight_decay
    )
    scheduler = get_linear_schedule_with_warmup(optimizer, work.warmup_steps, work.total_steps)
    step, running_loss = 0, 0.0
    on_step(step)
    for epoch in range(work.epochs):
        sampler.set_epoch(epoch)
        for input_ids, attention_mask, labels in loader:
            optimizer.zero_grad()
            loss = model(input_ids=input_ids, attention_mask=attention_mask, labels=labels).loss
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), training.optimizer.max_grad_norm or 1.0)
            optimizer.step()
            scheduler.step()
            running_loss += loss.item()
            step += 1
            on_step(step)
    return module


def _padded(work: Work) -> TensorDataset:
    """Return all samples as the tokenizer gives them with `padding="max_length"`."""
    rows = work.load_tokenizer().pad(
        [{"input_ids": sample["input_ids"].tolist()} for sample in work.samples()],
        padding="max_length",
        max_length=work.training.data.max_length,
        return_tensors="pt",
    )
    labels = torch.tensor([sample["labels"] for sample in work.samples()])
    return TensorDataset(rows["input_ids"], rows["attention_mask"], labels)
