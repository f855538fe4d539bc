"""One optimizer step equals the one-process big batch: loss and gradient, for any ranks and any accumulation."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from tests.trainer.harness import free_port, losses, training, write_samples

pytestmark = pytest.mark.gang

BOUND = 1e-6  # relative distance, fp32 without dropout
STEPS = 4  # 50 samples in global batches of 16: the last one has two samples, fewer than three ranks
CASES = {
    "budget-one-micro-batch": {"batch__tokensPerDevice": 4096},
    "budget-small": {"batch__tokensPerDevice": 64},
    "fixed-accumulation-1": {"batch__mode": "fixed"},
    "fixed-micro-batch-4": {"batch__mode": "fixed", "batch__microBatch": 4},
    "fixed-micro-batch-2": {"batch__mode": "fixed", "batch__microBatch": 2},
    "padded-to-maximum": {"batch__padTo": "maxLength", "batch__tokensPerDevice": 192},
}


@pytest.fixture(scope="module")
def gangs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Run all cases in gangs of 1, 2 and 3 processes; return the folder of each."""
    folders = {}
    for world_size in (1, 2, 3):
        base = tmp_path_factory.mktemp(f"world-{world_size}")
        cases = []
        for name, changes in CASES.items():
            folder = base / name
            folder.mkdir()
            write_samples(folder / "train.jsonl", 50)
            document = training(
                folder,
                data__validation=None,
                data__cacheDirectory=str(base / "cache"),
                model__dropout=0.0,
                maxSteps=STEPS,
                epochs=1,
                optimizer={"learningRate": 1e-12, "weightDecay": 0.0, "maxGradNorm": None},
                checkpoint={"directory": str(folder / "checkpoints"), "interval": None, "everySteps": 1000},
                **changes,
            )
            config = folder / "training.json"
            config.write_text(json.dumps({"job": "job", "runId": "numerics", "training": document}))
            cases.append({"name": name, "config": str(config)})
        (base / "cases.json").write_text(json.dumps(cases))
        port = str(free_port())
        workers = [
            subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).with_name("numerics_worker.py")),
                    str(base / "cases.json"),
                ],
                env={
                    **os.environ,
                    "RANK": str(rank),
                    "LOCAL_RANK": str(rank),
                    "WORLD_SIZE": str(world_size),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": port,
                    "OMP_NUM_THREADS": "1",
                },
            )
            for rank in range(world_size)
        ]
        assert [worker.wait(300) for worker in workers] == [0] * world_size
        folders[world_size] = base
    return folders


def reference(folder: Path, record: dict, ids: list[int]) -> tuple[float, torch.Tensor]:
    """Return loss and flat gradient of one plain forward pass over all of `ids`, without our model code or loop."""
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    samples = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    tokenizer = AutoTokenizer.from_pretrained(next((folder.parent / "cache").rglob("tokenizer.json")).parent)
    batch = tokenizer(
        [samples[i]["text"] for i in ids], padding=True, truncation=True, max_length=48, return_tensors="pt"
    )
    labels = torch.tensor([int(samples[i]["label"].removeprefix("class-")) for i in ids])
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    model.load_state_dict(record["weights"])
    loss = functional.cross_entropy(model(**batch).logits, labels)
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("name", list(CASES))
def test_gradient_and_loss_equal_the_big_batch(gangs: dict[int, Path], world_size: int, name: str) -> None:
    folder = gangs[world_size] / name
    record = torch.load(folder / f"{name}.pt", weights_only=False)
    logged = losses(folder)
    assert len(record["steps"]) == STEPS
    for number, step in enumerate(record["steps"], start=1):
        loss, gradient = reference(folder, record, step["ids"].tolist())
        distance = (step["gradient"] - gradient).norm() / gradient.norm()
        assert distance <= BOUND, f"step {number}: gradient {distance:.2e}"
        assert abs(logged[number] - loss) <= BOUND * abs(loss), (
            f"step {number}: loss {logged[number]} and {loss}"
        )


def test_cases_cover_accumulation_and_ranks_without_samples(gangs: dict[int, Path]) -> None:
    accumulation, empty = set(), 0
    for world_size, base in gangs.items():
        for name in CASES:
            for step in torch.load(base / name / f"{name}.pt", weights_only=False)["steps"]:
                accumulation.add(step["micro_steps"])
                empty += step["empty"] if world_size == 3 else 0
    assert {1, 2, 4} <= accumulation
    assert empty > 0


def test_global_batches_do_not_depend_on_the_number_of_processes(gangs: dict[int, Path]) -> None:
    for name in CASES:
        orders = []
        for base in gangs.values():
            steps = torch.load(base / name / f"{name}.pt", weights_only=False)["steps"]
            orders.append([step["ids"].tolist() for step in steps])
        assert orders[0] == orders[1] == orders[2]
        assert sorted(i for ids in orders[0] for i in ids) == list(range(50))
