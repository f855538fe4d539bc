"""The faults, and what each may cost. `play` does one and returns when its harm is done."""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.agent.gang import Gang
from tests.agent.harness import until

CHARGED, FREE, STOPPED = "charged", "free", "stopped"


@dataclass(frozen=True)
class Fault:
    """One kind of fault.

    Attributes:
        name: For the log.
        play: Does it.
        kinds: What the attempt it hits may come to.
        names_rank: Whether the record must name the rank that was hit.
    """

    name: str
    play: Callable[[Gang, random.Random], int | None]
    kinds: tuple[str, ...]
    names_rank: bool = False


def workers(gang: Gang) -> dict[int, int]:
    """Return the living workers' pids by rank."""
    found = {}
    for pid in gang.processes():
        with suppress(OSError, IndexError):
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            rank = [each[5:] for each in environment if each.startswith(b"RANK=")]
            if rank:
                found[int(rank[0])] = pid
    return found


def launchers(gang: Gang) -> dict[int, int]:
    """Return the pids of the processes in torchrun's place, by node."""
    found = {}
    for node, agent in gang.nodes.items():
        with suppress(OSError, IndexError):
            children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
            found[node] = int(children[0])
    return found


def signal_worker(number: signal.Signals) -> Callable[[Gang, random.Random], int | None]:
    def play(gang: Gang, dice: random.Random) -> int | None:
        rank, pid = dice.choice(sorted(workers(gang).items()))
        os.kill(pid, number)
        return rank

    return play


def order_worker(kind: str) -> Callable[[Gang, random.Random], int | None]:
    def play(gang: Gang, dice: random.Random) -> int | None:
        rank = dice.choice(sorted(workers(gang)))
        (gang.directory / f"fault-{rank}").write_text(kind)
        until(lambda: not (gang.directory / f"fault-{rank}").exists(), "the worker to obey")
        return rank

    return play


def kill_launcher(gang: Gang, dice: random.Random) -> None:
    os.kill(launchers(gang)[dice.choice(sorted(gang.nodes))], signal.SIGKILL)


def kill_agents(count: int, *, node: int | None = None) -> Callable[[Gang, random.Random], int | None]:
    def play(gang: Gang, dice: random.Random) -> None:
        chosen = [node] if node is not None else dice.sample(range(gang.nnodes), min(count, gang.nnodes))
        for each in chosen:
            gang.kill_node(each)
        time.sleep(dice.random())
        for each in chosen:
            gang.start_node(each)

    return play


def stop_agents(everybody: bool) -> Callable[[Gang, random.Random], int | None]:
    def play(gang: Gang, dice: random.Random) -> None:
        chosen = list(gang.nodes) if everybody else [dice.choice(sorted(gang.nodes))]
        for node in chosen:
            gang.nodes[node].terminate()
        for node in chosen:
            code = gang.nodes[node].wait(60)
            assert code == 143, f"node {node} left with {code} after SIGTERM:\n{gang.all_err()}"
        time.sleep(dice.random())
        for node in chosen:
            gang.start_node(node)

    return play


def freeze_agent(gang: Gang, dice: random.Random) -> None:
    """An agent that is silent for longer than the others wait: its node is lost, then comes back."""
    agent = gang.nodes[dice.choice(sorted(gang.nodes))]
    agent.send_signal(signal.SIGSTOP)
    time.sleep(gang.timing["peer_deadline"] + 1)
    agent.send_signal(signal.SIGCONT)


FAULTS = (
    Fault("a worker is killed", signal_worker(signal.SIGKILL), (CHARGED,), names_rank=True),
    Fault("a worker raises", order_worker("raise"), (CHARGED,), names_rank=True),
    Fault("a worker leaves early", order_worker("leave"), (CHARGED,), names_rank=True),
    Fault("a worker is stopped", signal_worker(signal.SIGSTOP), (CHARGED,), names_rank=True),
    Fault("torchrun is killed", kill_launcher, (CHARGED,)),
    Fault("an agent is killed", kill_agents(1), (FREE,)),
    Fault("node 0's agent is killed", kill_agents(1, node=0), (FREE,)),
    Fault("two agents are killed", kill_agents(2), (FREE,)),
    Fault("an agent is stopped in order", stop_agents(everybody=False), (STOPPED,)),
    Fault("all agents are stopped in order", stop_agents(everybody=True), (STOPPED,)),
    Fault("an agent freezes", freeze_agent, (FREE,)),
)
