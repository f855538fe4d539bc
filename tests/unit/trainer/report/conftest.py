"""Job directories as training leaves them, without training."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from ddpk8s.spec.training import Training
from ddpk8s_trainer.metrics.figures import json_value
from ddpk8s_trainer.metrics.timer import PARTS

BEGIN = 1_790_000_000.0
SPLIT_MEANS = dict(zip(PARTS, (0.02, 0.30, 0.48, 0.09, 0.07, 0.0, 0.0, 0.01), strict=True))


class SampleJob:
    """Writes the files of a job; every call goes on where the last one ended."""

    def __init__(self, directory: Path, job="reviews", labels=("negative", "positive"), total=1200):
        self.directory, self.labels, self.total = directory, list(labels), total
        self.random = np.random.default_rng(7)
        self.time, self.attempt, self.metrics, self.attempts = BEGIN, -1, [], []
        self.best = 0.0
        directory.mkdir(parents=True, exist_ok=True)
        training = {
            "model": {
                "config": {"model_type": "bert", "hidden_size": 128},
                "buildTokenizer": {"vocabSize": 8000},
            },
            "data": {"train": "/data/reviews/train.jsonl", "validation": "/data/reviews/validation.jsonl"},
            "maxSteps": total,
        }
        document = {"job": job, "runId": "7f3a", "training": Training.model_validate(training).to_document()}
        self.write("training.json", json.dumps(document, ensure_ascii=False))

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def start(self, resumed=None, rejected=(), world=2, down=0.0, **more):
        """Start an attempt, 20 s before its first step."""
        last = self.metrics[-1] if self.metrics else {}
        last_step, last_time = max((e["step"] for e in self.metrics), default=0), last.get("time")
        kept = [event for event in self.metrics if event["step"] <= (resumed or 0)]
        since = kept[-1]["time"] if kept else self.time
        stopped = bool(self.attempts) and self.attempts[-1].get("reason") == "stopped"
        self.time += down
        self.attempt += 1
        self.metrics = kept
        start = {"event": "start", "attempt": self.attempt, "runId": "7f3a", "time": self.time}
        start |= {"worldSize": world, "resumedStep": resumed, "rejected": list(rejected)}
        lost = self.time - since if self.attempt and not stopped else 0.0
        start |= {"lostSteps": last_step - (resumed or 0) if self.attempt else 0, "lostSeconds": lost}
        start |= {"lostSince": since if lost else None}
        self.attempts.append(start | {"lastStep": last_step, "lastTime": last_time} | more)
        self.time += 20
        return self

    def steps(self, first, last, every=10, speed=1.0, **more):
        """Log steps of a training that learns."""
        for step in range(first, last + 1, every):
            noise = self.random.normal(0, 0.05)
            split = {
                part: every * mean * speed * self.random.uniform(0.8, 1.25)
                for part, mean in SPLIT_MEANS.items()
            }
            self.time += sum(split.values())
            seconds = sum(split.values())
            event = {"event": "step", "step": step, "attempt": self.attempt, "time": self.time}
            event |= {
                "epoch": step / 400,
                "loss": 0.22 + 0.48 * math.exp(-step / 250) + noise * (0.4 + math.exp(-step / 400)),
                "learningRate": 3e-4 * min(step / 100, max(0.0, (self.total - step) / (self.total - 100))),
                "gradNorm": float(np.exp(self.random.normal(0, 0.35)) * (0.6 + math.exp(-step / 150))),
                "samplesPerSecond": 64 * every / seconds,
                "tokensPerSecondPerDevice": 1400 * every / seconds,
                "paddedTokensPerSecondPerDevice": 1540 * every / seconds,
                "paddingShare": 0.09,
                "peakMemoryBytes": 1_430_000_000 + step * 1000,
                "lossScale": None,
                "skippedSteps": 0,
                "samples": 64 * every,
                "tokens": 2800 * every,
                "split": split,
            }
            self.metrics.append(event | more)
        return self

    def evaluate(self, step, seconds=9.0):
        """Evaluate; accuracy rises and then falls a little."""
        self.time += seconds
        if self.metrics and "split" in self.metrics[-1]:
            self.metrics[-1]["split"]["evaluation"] += seconds
        count = len(self.labels)
        accuracy = 0.5 + 0.38 * (1 - math.exp(-step / 220)) - max(0, step - 1000) / 20000
        right = np.round(accuracy * self.random.uniform(0.94, 1.06, count) * 1000).astype(int)
        confusion = self.random.multinomial(1, np.ones(count) / count, count) * 0
        for row in range(count):
            spread = self.random.dirichlet(np.ones(count) * 2)
            confusion[row] = np.round(spread * (1000 - right[row]))
            confusion[row, row] = right[row]
        accuracy = float(np.trace(confusion) / confusion.sum())
        best, self.best = accuracy > self.best, max(accuracy, self.best)
        event = {
            "event": "evaluation",
            "step": step,
            "epoch": step / 400,
            "attempt": self.attempt,
            "time": self.time,
        }
        event |= {"loss": 0.9 - 0.62 * accuracy + step / 20000, "accuracy": accuracy, "f1": accuracy - 0.012}
        event |= {
            "confusion": confusion.tolist(),
            "labels": self.labels,
            "samples": int(confusion.sum()),
            "best": best,
        }
        self.metrics.append(event)
        return self

    def checkpoint(self, step, best=False):
        """Save, in the background."""
        event = {"event": "checkpoint", "step": step, "attempt": self.attempt, "time": self.time + 2}
        self.metrics.append(event | {"seconds": 1.8, "bytes": 91_000_000, "best": best})
        self.write(f"step-{step:08d}/manifest.json", "{}" * 2000)
        return self

    def end(self, reason, step, **more):
        """End the attempt with a word."""
        self.time += 6
        event = {"event": "end", "attempt": self.attempt, "time": self.time, "step": step, "reason": reason}
        self.attempts.append(event | more)
        return self

    def save(self):
        """Write the two files; return the directory."""
        for name, events in (("metrics", self.metrics), ("attempts", self.attempts)):
            lines = [json.dumps(json_value(event), ensure_ascii=False) + "\n" for event in events]
            self.write(f"{name}.jsonl", "".join(lines))
        return self.directory


@pytest.fixture
def sample_job(tmp_path):
    """A new job: sample_job(**settings) -> SampleJob."""
    return lambda **settings: SampleJob(tmp_path / "job", **settings)


def restarted(directory, **settings):
    """A run that was killed once, stopped once, and finished."""
    job = (
        SampleJob(directory, **settings).start().steps(10, 400).evaluate(400).checkpoint(400).steps(410, 560)
    )
    rejected = [{"path": "step-00000500", "reason": "size of shard-00001 is 1024, not 40960"}]
    job.start(400, rejected=rejected, down=45).steps(410, 800).evaluate(800).checkpoint(800, best=True)
    job.end("stopped", 805)
    job.start(800, down=30, world=3).steps(810, 1200, speed=0.75).evaluate(1200).checkpoint(1200)
    job.write("model/model.safetensors", "x" * 90_000)
    job.end("finished", 1200, split={"evaluation": 0.0, "checkpoint": 2.0})
    return job


@pytest.fixture
def restarted_job(tmp_path):
    """The directory of a run that was killed once, stopped once, and finished."""
    return restarted(tmp_path / "job").save()
