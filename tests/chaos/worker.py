"""A worker that trains in milliseconds: a chain of hashes over all ranks, with checkpoints on the shared volume.

As with a real one, a peer that is gone ends it in the next step, and a resumed run repeats itself exactly.
"""

import fcntl
import hashlib
import json
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

STEP_SECONDS = 0.02
SAVE_EVERY = 5


def advance(weights: str, step: int, ranks: int) -> str:
    """Return the weights after a step: what all ranks together make of it."""
    parts = [hashlib.sha256(f"{weights} {step} {rank}".encode()).digest() for rank in range(ranks)]
    total = sum(struct.unpack("<Q", part[:8])[0] for part in parts) % (1 << 64)
    return hashlib.sha256(f"{weights} {total}".encode()).hexdigest()


class Collective:
    """A sum over all ranks, by way of rank 0."""

    def __init__(self, rank: int, ranks: int, address: tuple[str, int]) -> None:
        self.rank = rank
        self.peers: list[socket.socket] = []
        if rank == 0:
            server = socket.create_server(address)
            while len(self.peers) < ranks - 1:
                self.peers.append(server.accept()[0])
            server.close()
        else:
            while not self.peers:
                try:
                    self.peers.append(socket.create_connection(address, timeout=5))
                    self.peers[0].settimeout(None)
                except OSError:
                    time.sleep(0.05)

    def sum(self, value: int) -> int:
        if self.rank > 0:
            self.peers[0].sendall(struct.pack("<Q", value))
            return self._read(self.peers[0])
        total = (value + sum(self._read(peer) for peer in self.peers)) % (1 << 64)
        for peer in self.peers:
            peer.sendall(struct.pack("<Q", total))
        return total

    def _read(self, peer: socket.socket) -> int:
        data = b""
        while len(data) < 8:
            piece = peer.recv(8 - len(data))
            if not piece:
                raise RuntimeError("[stand-in/pair.cc:561] Connection closed by peer [127.0.0.1]:1")
            data += piece
        return int(struct.unpack("<Q", data)[0])


def load(shared: Path) -> tuple[int, str]:
    try:
        content = json.loads((shared / "checkpoint.json").read_text())
        return int(content["step"]), str(content["weights"])
    except OSError:
        return 0, "start"


def save(shared: Path, step: int, weights: str) -> None:
    partial = shared / f"checkpoint.{os.getpid()}.partial"
    partial.write_text(json.dumps({"step": step, "weights": weights}))
    partial.rename(shared / "checkpoint.json")


def main() -> int:
    directory = Path(os.environ["DIRECTORY"])
    shared = directory / "shared"
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    # Held for life: two workers of one rank at once are two gangs.
    with (directory / f"alive-{rank}").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (directory / f"violation-{rank}-{os.getpid()}").write_text(f"two workers of rank {rank} at once")
            return 1
        return train(directory, shared, rank, ranks)


def train(directory: Path, shared: Path, rank: int, ranks: int) -> int:
    gang = Collective(rank, ranks, (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    step, weights = load(shared)
    gang.sum(0)  # nobody saves before all have loaded
    while True:
        total = directory / "total"
        last = gang.sum(int(total.read_text()) if rank == 0 and total.exists() else 0)
        if last and step >= last:
            break
        step += 1
        part = hashlib.sha256(f"{weights} {step} {rank}".encode()).digest()
        weights = hashlib.sha256(
            f"{weights} {gang.sum(struct.unpack('<Q', part[:8])[0])}".encode()
        ).hexdigest()
        obey(directory / f"fault-{rank}")
        if rank == 0 and step % SAVE_EVERY == 0:
            save(shared, step, weights)
        print(f"step {step}", flush=True)
        time.sleep(STEP_SECONDS)
    if rank == 0:
        (shared / "final.json").write_text(json.dumps({"step": step, "weights": weights}))
    return 0


def obey(order: Path) -> None:
    """Fail as the driver says, once."""
    if not order.exists():
        return
    kind = order.read_text()
    order.unlink()
    if kind == "raise":
        raise ValueError("a sample that cannot be read")
    if kind == "leave":
        os._exit(0)
    if kind == "loop":
        while True:
            time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())
