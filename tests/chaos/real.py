"""The same with the real trainer, on two agents: losses and weights must be bit-equal to an undisturbed run's."""

import json
import random
import signal
import time
from pathlib import Path
from typing import Any

from tests.agent.gang import Gang
from tests.agent.harness import until
from tests.chaos.faults import (
    CHARGED,
    FREE,
    STOPPED,
    Fault,
    kill_agents,
    kill_launcher,
    signal_worker,
    stop_agents,
)
from tests.trainer.harness import losses, training

STEPS = 3000
FAULTS = (
    Fault("a worker is killed", signal_worker(signal.SIGKILL), (CHARGED,), names_rank=True),
    Fault("torchrun is killed", kill_launcher, (CHARGED,)),
    Fault("an agent is killed", kill_agents(1), (FREE,)),
    Fault("node 0's agent is killed", kill_agents(1, node=0), (FREE,)),
    Fault("an agent is stopped in order", stop_agents(everybody=False), (STOPPED,)),
    Fault("all agents are stopped in order", stop_agents(everybody=True), (STOPPED,)),
)


def start(directory: Path) -> Gang:
    """Start two agents with one rank each."""
    directory.mkdir()
    document = training(
        directory, epochs=1000, maxSteps=STEPS, checkpoint__everySteps=100, metrics__sampleLog=False
    )
    document["data"]["validation"] = None
    config = directory / "training.json"
    config.write_text(json.dumps({"job": "job", "runId": "run-1", "training": document}))
    gang = Gang(directory, nnodes=2, nproc=1, torch=True)
    gang.timing |= {"teardown": 3.0}
    gang.document |= {
        "command": {"module": "ddpk8s_trainer", "args": ["--config", str(config)]},
        "checkpointDirectory": str(directory / "checkpoints" / "job"),
        "maxRestarts": 1000,
        "env": {"DIRECTORY": str(directory), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    }
    return gang.start_all()


def ledger(gang: Gang) -> dict[str, Any]:
    content = json.loads((gang.directory / "checkpoints" / "job" / ".ddpk8s" / "run-1.json").read_text())
    assert isinstance(content, dict)
    return content


def weights(directory: Path) -> dict[str, str]:
    """Return the hashes of the last checkpoint's tensors."""
    newest = max((directory / "checkpoints" / "job").glob("step-*"))
    files = json.loads((newest / "manifest.json").read_text())["files"]
    return {name: entry["xxh3_128"] for name, entry in files.items() if name.endswith("_0.distcp")}


def run(directory: Path, faults: int, seed: int) -> str:
    """Play so many faults; return what happened, in words.

    Raises:
        AssertionError: Something is not as in the undisturbed run.
    """
    dice = random.Random(seed)
    calm = start(directory / "calm")
    gang = None
    try:
        assert calm.end_all() == [0, 0], calm.all_err()
        gang = start(directory / "disturbed")
        seconds = [disturb(gang, dice, number) for number in range(faults)]
        assert gang.end_all() == [0, 0], gang.all_err()
    finally:
        calm.clean_up()
        if gang is not None:
            gang.clean_up()
    assert losses(gang.directory) == losses(calm.directory), "the losses differ"
    assert weights(gang.directory) == weights(calm.directory), "the weights differ"
    assert not gang.processes(), f"processes are left: {gang.processes()}"
    longest = max(seconds, default=0.0)
    return f"real trainer, 2 nodes, seed {seed}: {faults} faults survived, weights bit-equal; longest {longest:.1f} s"


def disturb(gang: Gang, dice: random.Random, number: int) -> float:
    """Wait until it trains, play a fault; return the seconds until it trains again."""
    step = max(losses(gang.directory), default=0)
    until(lambda: max(losses(gang.directory), default=0) > step + 60, "newer steps")
    time.sleep(1.5 + dice.random())
    attempt, fault = int(ledger(gang)["attempt"]), dice.choice(FAULTS)
    assert max(losses(gang.directory)) < STEPS, "the training is over before the faults are"
    began = time.monotonic()
    hit = fault.play(gang, dice)
    until(lambda: str(attempt) in ledger(gang)["records"], "a verdict")
    record = ledger(gang)["records"][str(attempt)]
    where = f"fault {number}, {fault.name} (rank {hit}), attempt {attempt}"
    assert record["kind"] in fault.kinds, f"{where}: it came to {record}\n{gang.all_err()[-4000:]}"
    assert not fault.names_rank or f"rank {hit} " in record["why"], f"{where}: {record}"
    until(lambda: int(ledger(gang)["attempt"]) > attempt, "the next attempt")
    return time.monotonic() - began
