"""Runs many small trainings in one gang and writes each step's loss and gradient, for comparison elsewhere.

Usage: numerics_worker.py CASES.json, a list of {"name", "config"}; rank 0 writes NAME.pt beside each config:
{"weights": at the start, "steps": [{"loss", "gradient" (flat), "ids", "micro_steps"}]}.
"""

import json
import sys
from pathlib import Path

import torch

from ddpk8s_trainer.callbacks import Callback
from ddpk8s_trainer.config import load_config
from ddpk8s_trainer.distributed import join_gang, leave_gang
from ddpk8s_trainer.loop import train
from ddpk8s_trainer.metrics import RunFacts, open_recorder
from ddpk8s_trainer.run import Run
from ddpk8s_trainer.setup import build_run
from ddpk8s_trainer.signals import StopRequest


class Capture(Callback):
    """Notes weights before the first step and the gradient of every step."""

    def __init__(self) -> None:
        self.weights: dict[str, torch.Tensor] = {}
        self.steps: list[dict[str, object]] = []

    def before_step(self, run: Run, step: int) -> None:
        if not self.weights:
            self.weights = {name: value.clone() for name, value in run.strategy.module.state_dict().items()}

    def before_update(self, run: Run, step: int) -> None:
        epoch, index = run.plan.locate(step - 1)
        gradients = [p.grad.flatten().clone() for p in run.strategy.module.parameters() if p.grad is not None]
        micro_steps = len(run.plan.rank_batches(epoch, index, 0))
        empty = sum(
            not len(ids)
            for rank in range(run.gang.world_size)
            for ids in run.plan.rank_batches(epoch, index, rank)
        )
        self.steps.append(
            {
                "gradient": torch.cat(gradients),
                "ids": run.plan.global_batch(epoch, index),
                "micro_steps": micro_steps,
                "empty": empty,
            }
        )


def run_case(name: str, path: Path, gang: object) -> None:
    config = load_config(path)
    capture = Capture()
    facts = RunFacts(config.job_directory, config.run_id, 0, gang.world_size, "cpu", False)
    recorder = open_recorder(facts, gang.rank)
    run, _tokenizer, _digest = build_run(config, gang, StopRequest(), recorder, [capture])
    train(run)
    recorder.close()
    run.checkpoints.close()
    if gang.is_main:
        torch.save({"weights": capture.weights, "steps": capture.steps}, path.parent / f"{name}.pt")


if __name__ == "__main__":
    the_gang = join_gang()
    for case in json.loads(Path(sys.argv[1]).read_text()):
        run_case(case["name"], Path(case["config"]), the_gang)
    leave_gang()
