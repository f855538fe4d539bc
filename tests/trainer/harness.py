"""Start real gangs of trainer processes on tiny models, and read what they leave behind."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("worker.py")
WORDS = [f"w{i}" for i in range(60)]


def write_samples(path: Path, count: int, *, seed: int = 0, longest: int = 30, labels: int = 3) -> Path:
    """Write `count` samples of ragged length whose label shows in their words."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            label = rng.randrange(labels)
            length = rng.choice([3, 5, 8, 13, longest])
            words = [rng.choice(WORDS[label * 20 : label * 20 + 20]) for _ in range(length)]
            file.write(
                json.dumps({"text": " ".join([*words, f"n{number % 7}"]), "label": f"class-{label}"}) + "\n"
            )
    return path


def training(directory: Path, **changes: Any) -> dict[str, Any]:
    """Return a small `training` section; `batch__globalBatch=8` in `changes` sets `batch.globalBatch`."""
    train = directory / "train.jsonl"
    if not train.exists():
        write_samples(train, 96)
        write_samples(directory / "validation.jsonl", 31, seed=1)
    document: dict[str, Any] = {
        "model": {
            "config": {
                "model_type": "bert",
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "intermediate_size": 32,
                "max_position_embeddings": 64,
            },
            "buildTokenizer": {"vocabSize": 200, "type": "wordpiece", "minFrequency": 1},
        },
        "data": {"train": str(train), "validation": str(directory / "validation.jsonl"), "maxLength": 48},
        "batch": {"globalBatch": 16, "tokensPerDevice": 128},
        "epochs": 2,
        "optimizer": {"learningRate": 0.01},
        "checkpoint": {"directory": str(directory / "checkpoints"), "everySteps": 3, "interval": None},
        "metrics": {"logEverySteps": 1, "tensorboard": False, "sampleLog": True},
        "output": {"export": False, "report": False},
    }
    for key, value in changes.items():
        *sections, name = key.split("__")
        place = document
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    return document


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Gang:
    """Running trainer processes, one per rank."""

    directory: Path
    processes: list[subprocess.Popen[str]]
    logs: list[Path]
    status: Path
    codes: list[int] = field(default_factory=list)

    def wait(self, timeout: float = 240) -> list[int]:
        """Wait for all ranks; return their exit codes, negative for signals."""
        deadline = time.monotonic() + timeout
        try:
            self.codes = [p.wait(max(1, deadline - time.monotonic())) for p in self.processes]
        finally:
            self.kill()
        return self.codes

    def kill(self) -> None:
        """SIGKILL whatever still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def output(self, rank: int = 0) -> str:
        """Return what a rank wrote to stderr."""
        return self.logs[rank].read_text(encoding="utf-8")

    def outputs(self) -> str:
        """Return what all ranks wrote to stderr."""
        return "\n".join(f"--- rank {rank}\n{self.output(rank)}" for rank in range(len(self.logs)))

    def error(self, rank: int = 0) -> dict[str, Any]:
        """Return the typed error a rank left for the agent."""
        result: dict[str, Any] = json.loads((self.status / f"rank-{rank}.error.json").read_text())
        return result

    def wait_for_step(self, step: int, timeout: float = 200) -> None:
        """Return once the metrics show `step`."""
        deadline = time.monotonic() + timeout
        while max(losses(self.directory), default=0) < step:
            assert time.monotonic() < deadline, f"step {step} was not reached\n{self.outputs()}"
            assert self.processes[0].poll() is None, self.outputs()
            time.sleep(0.02)


def start(
    directory: Path,
    document: dict[str, Any],
    nproc: int = 2,
    *,
    attempt: int = 0,
    run_id: str = "run-a",
    fault: str = "",
) -> Gang:
    """Start `nproc` ranks as torchrun would; `fault` is explained in worker.py."""
    config = directory / f"training-{attempt}.json"
    config.write_text(json.dumps({"job": "job", "runId": run_id, "training": document}))
    status = directory / f"status-{run_id}-{attempt}"
    status.mkdir(exist_ok=True)
    port = free_port()
    processes, logs = [], []
    for rank in range(nproc):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(nproc),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
            "DDPK8S_ATTEMPT": str(attempt),
            "DDPK8S_STATUS_DIR": str(status),
            "DDPK8S_PROGRESS_SECONDS": "0",
            "FAULT": fault,
        }
        log = directory / f"rank-{rank}-{attempt}.log"
        logs.append(log)
        with log.open("w") as sink, (directory / f"rank-{rank}-{attempt}.out").open("w") as out:
            command = [sys.executable, str(WORKER), "--config", str(config)]
            processes.append(subprocess.Popen(command, env=environment, stdout=out, stderr=sink, text=True))
    return Gang(directory, processes, logs, status)


def run(directory: Path, document: dict[str, Any], nproc: int = 2, **options: Any) -> Gang:
    """Start a gang and wait for it."""
    gang = start(directory, document, nproc, **options)
    gang.wait()
    return gang


def events(directory: Path, kind: str) -> list[dict[str, Any]]:
    """Return the metrics of one kind."""
    path = directory / "checkpoints" / "job" / "metrics.jsonl"
    if not path.exists():
        return []
    lines = []
    for line in path.read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue  # being written
    return [line for line in lines if line["event"] == kind]


def losses(directory: Path) -> dict[int, float]:
    """Return the loss of every step."""
    return {event["step"]: event["loss"] for event in events(directory, "step")}


def consumed(directory: Path) -> dict[int, list[int]]:
    """Return the sample ids of every step, over all ranks, sorted."""
    steps: dict[int, list[int]] = {}
    for path in (directory / "checkpoints" / "job" / "samples").glob("rank-*.jsonl"):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            steps.setdefault(entry["step"], []).extend(entry["ids"])
    return {step: sorted(ids) for step, ids in sorted(steps.items())}


def checkpoints(directory: Path) -> list[str]:
    """Return the names of complete checkpoints, oldest first."""
    return sorted(path.name for path in (directory / "checkpoints" / "job").glob("step-*"))
