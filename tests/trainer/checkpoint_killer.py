"""Kill saving ranks at random moments, many times: `python -m tests.trainer.checkpoint_killer DIRECTORY SEED ROUNDS`.

A round forks two ranks that open the job directory, check that what they find is what was saved, and go on saving;
after a random time they are killed. Prints one JSON object a round: what was found, and what had been complete.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import torch
import torch.distributed as dist

from tests.trainer.checkpoint_worker import fork_gang, make_state, open_manager, same


def rank_main(directory: Path, report: int, rank: int, port: int) -> None:
    """Save forever, the same step now and then again; tells `report` what was found and what is complete."""
    try:
        torch.set_num_threads(1)
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2"}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        dist.init_process_group("gloo")
        manager = open_manager(directory)
        found = manager.open()
        step = found.step if found else 0
        right = found is None or same(manager.load(found, make_state(0)), make_state(step))
        tell(report, rank, {"found": step, "right": right, "rejected": found.rejected if found else []})
        again = False
        while True:
            step, again = (step, False) if again else (step + 1, step % 3 == 0)
            manager.save(step, make_state(step), {}, best=step % 5 == 0)
            for saved in manager.finish():
                tell(report, rank, {"saved": saved.step} if saved.error is None else {"error": saved.error})
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def tell(report: int, rank: int, message: dict[str, object]) -> None:
    if rank == 0:
        os.write(report, json.dumps(message).encode() + b"\n")


def play(directory: Path, chance: random.Random) -> dict[str, object]:
    """One round."""
    reader, writer = os.pipe()
    children = fork_gang(2, lambda rank, port: rank_main(directory, writer, rank, port))
    os.close(writer)
    with os.fdopen(reader) as messages:
        first = messages.readline()  # both ranks have opened the directory and begun to save
        time.sleep(chance.uniform(0, 0.5))
        for child in chance.sample(children, 2):
            os.kill(child, signal.SIGKILL)
            time.sleep(chance.choice([0, 0.05]))
        for child in children:
            os.waitpid(child, 0)
        later = [json.loads(line) for line in messages if line.endswith("\n")]
    return {**json.loads(first or "{}"), "later": later}


def main() -> None:
    directory, chance = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    for _ in range(int(sys.argv[3])):
        print(json.dumps(play(directory, chance)), flush=True)


if __name__ == "__main__":
    main()
