"""A training of one's own under `ddpk8s`: what a script does to start in many processes, stop and go on.

torchrun sets RANK, LOCAL_RANK, WORLD_SIZE and the rendezvous. SIGTERM means: save, and exit with code 143.
"""

import argparse
import logging
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES = 32
SAMPLES = 64  # of one step, on one process


class StopFlag:
    """Turns SIGTERM into a stop that all processes agree on."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.raised = False
        signal.signal(signal.SIGTERM, self._raise)

    def _raise(self, *_: object) -> None:
        self.raised = True

    def agreed(self) -> bool:
        """Return whether any process was asked to stop; all call this at the same step."""
        seen = torch.tensor(float(self.raised), device=self.device)
        dist.all_reduce(seen, dist.ReduceOp.MAX)
        return bool(seen)


def save(path: Path, step: int, model: DistributedDataParallel, optimizer: torch.optim.Optimizer) -> None:
    """Write the state and rename it into place, so that a kill never leaves half of it."""
    if dist.get_rank() == 0:
        state = {"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
        partial = path.with_suffix(".partial")
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(state, partial)
        partial.rename(path)
    dist.barrier()


def batch(step: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return made-up features [SAMPLES, FEATURES] and their sums [SAMPLES, 1]; each step has its own."""
    generator = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    features = torch.randn(SAMPLES, FEATURES, generator=generator).to(device)
    return features, features.sum(1, keepdim=True)


def main() -> int:
    """Train; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--save-every", type=int, default=50, help="in steps")
    args = parser.parse_args()

    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    first = dist.get_rank() == 0
    logging.basicConfig(
        level=logging.INFO if first else logging.ERROR, format="%(message)s", stream=sys.stdout
    )

    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(FEATURES, 1).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    stop, start = StopFlag(device), 0
    if args.checkpoint.exists():
        state = torch.load(args.checkpoint, map_location=device)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["step"]
        logging.info("continuing after step %d", start)

    for step in range(start + 1, args.steps + 1):
        features, target = batch(step, device)
        loss = torch.nn.functional.mse_loss(model(features), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            logging.info("step %d/%d loss %.4f", step, args.steps, loss.item())
        stopping = stop.agreed()
        if stopping or step % args.save_every == 0 or step == args.steps:
            save(args.checkpoint, step, model, optimizer)
        if stopping and step < args.steps:
            return 143
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
