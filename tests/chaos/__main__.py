"""`python -m tests.chaos [--faults 200] [--nodes 2,4] [--real 10] [--seed 0]`: seeded faults against real agents.

Everything is checked from outside: the kernel's locks and process table, the ledger, the final weights.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from ddpk8s_agent.preflight import free_port
from tests.agent.gang import Gang
from tests.agent.harness import until
from tests.chaos import real
from tests.chaos.faults import FAULTS, Fault, workers
from tests.chaos.worker import advance

WORKER = Path(__file__).with_name("worker.py")


class Chaos:
    """One gang, its faults and what was seen of them."""

    def __init__(self, directory: Path, nodes: int, seed: int) -> None:
        self.gang = Gang(directory, nnodes=nodes)
        self.dice = random.Random(seed)
        self.times: dict[str, list[float]] = defaultdict(list)
        self.gang.document |= {
            "command": {"script": str(WORKER), "args": [], "workingDirectory": str(directory)},
            "maxRestarts": 100_000,
            "progressRegex": r"step (?P<step>\d+)",
            "hangTimeoutSeconds": 3,
            "masterPort": free_port(),
            "startDeadlineSeconds": 120,
        }
        (directory / "shared").mkdir()

    @property
    def shared(self) -> Path:
        return self.gang.directory / "shared"

    def run(self, faults: int) -> None:
        """Play so many faults, then train to the end.

        Raises:
            AssertionError: An invariant is broken; the message says which.
        """
        gang = self.gang.start_all()
        attempt = self.training_since(-1)
        for number in range(faults):
            fault = self.dice.choice(FAULTS)
            # Long enough that all have heard of a newer step: a second kill without one would be charged.
            time.sleep(2 + self.dice.random())
            attempt = self.play(number, fault, attempt)
        step = json.loads((self.shared / "checkpoint.json").read_text())["step"]
        (gang.directory / "total").write_text(str(step + 100))
        codes = gang.end_all()
        assert codes == [0] * gang.nnodes, f"the gang left with {codes}\n{gang.all_err()}"
        final = json.loads((self.shared / "final.json").read_text())
        weights = "start"
        for each in range(1, final["step"] + 1):
            weights = advance(weights, each, gang.nnodes * 2)
        assert final["weights"] == weights, "the weights are not those of an undisturbed run"
        assert not gang.processes(), f"processes are left: {gang.processes()}"
        self.no_violation()

    def play(self, number: int, fault: Fault, attempt: int) -> int:
        """Play one fault against a running attempt; return the attempt that runs afterwards."""
        began = time.monotonic()
        hit = fault.play(self.gang, self.dice)
        after = self.training_since(attempt)
        self.times[fault.name].append(time.monotonic() - began)
        self.no_violation()
        records = self.gang.ledger()["records"]
        record = records.get(str(attempt))
        where = f"fault {number}, {fault.name} (rank {hit}), attempt {attempt}"
        assert record, f"{where}: no record of it\n{records}"
        assert record["kind"] in fault.kinds, f"{where}: it came to {record}\n{self.gang.all_err()[-4000:]}"
        if fault.names_rank:
            assert f"rank {hit} " in record["why"], f"{where}: {record}\n{self.gang.all_err()[-4000:]}"
        between = [str(each) for each in range(attempt + 1, after) if str(each) in records]
        charged = [each for each in between if records[each]["kind"] == "charged"]
        assert not charged, f"{where}: attempts {charged} were charged, which nobody disturbed: {records}"
        return after

    def training_since(self, attempt: int) -> int:
        """Wait until an attempt after this one trains, on all ranks; return its number."""

        def ready() -> int | None:
            self.one_gang()
            try:
                newest = int(self.gang.ledger()["attempt"])
            except (OSError, ValueError):
                return None
            if newest <= attempt:
                return None
            for node in range(self.gang.nnodes):
                logs = self.gang.folder(node) / "state" / f"attempt-{newest}"
                if any(
                    not path.exists() or path.stat().st_size < 10
                    for path in (logs / f"rank-{rank}.stdout.log" for rank in (2 * node, 2 * node + 1))
                ):
                    return None
            return newest + 1

        try:
            return int(until(ready, "a training gang")) - 1
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.gang.all_err()[-6000:]}") from None

    def one_gang(self) -> None:
        """Look at the process table: all workers belong to one start."""
        starts = set()
        for pid in workers(self.gang).values():
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            starts |= {each for each in environment if each.startswith(b"RDZV_ID=")}
        assert len(starts) <= 1, f"two gangs at once: {starts}"

    def no_violation(self) -> None:
        """Look at what workers said of others of their own rank."""
        found = list(self.gang.directory.glob("violation-*"))
        assert not found, found[0].read_text()

    def figures(self) -> str:
        """Return how long it took from each fault to the next step, in words."""
        lines = [f"{'fault':34} {'times':>5} {'median':>8} {'longest':>8}"]
        for name, seconds in sorted(self.times.items()):
            lines.append(f"{name:34} {len(seconds):5} {median(seconds):6.1f} s {max(seconds):6.1f} s")
        return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--nodes", default="2,4", help="numbers of nodes, each gets its share of the faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--real", type=int, default=10, help="faults with the real trainer; 0 leaves it out")
    options = parser.parse_args(arguments)
    sizes = [int(each) for each in options.nodes.split(",")] if options.faults else []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
            chaos = Chaos(Path(directory), size, options.seed)
            try:
                chaos.run(options.faults // len(sizes))
            except AssertionError as error:
                print(f"{size} nodes, seed {options.seed}: {error}")
                return 1
            finally:
                chaos.gang.clean_up()
            count = sum(len(seconds) for seconds in chaos.times.values())
            print(
                f"{size} nodes x 2 workers, seed {options.seed}: {count} faults survived\n{chaos.figures()}\n"
            )
    return _real(options.real, options.seed) if options.real else 0


def _real(faults: int, seed: int) -> int:
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        try:
            print(real.run(Path(directory), faults, seed))
        except AssertionError as error:
            print(f"real trainer, seed {seed}: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
