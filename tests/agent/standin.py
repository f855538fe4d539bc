"""Stands in torchrun's place, without torch: real processes that start in milliseconds.

Called as the agent's own shim is: `--result FILE --parent PID -- torchrun's arguments`.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CLOSE_SECONDS = 30.0


def main() -> int:
    split = sys.argv.index("--")
    own = argparse.ArgumentParser()
    own.add_argument("--result", type=Path)
    own.add_argument("--parent", type=int)
    own.add_argument("--notify", type=int)
    options = own.parse_args(sys.argv[1:split])
    theirs = argparse.ArgumentParser()
    for name in ("nnodes", "node-rank", "nproc-per-node", "master-port", "max-restarts"):
        theirs.add_argument(f"--{name}", type=int)
    for name in ("rdzv-backend", "rdzv-id", "master-addr", "log-dir", "redirects"):
        theirs.add_argument(f"--{name}")
    torchrun, command = theirs.parse_known_args(sys.argv[split + 1 :])
    die_with(options.parent)
    os.set_inheritable(options.notify, False)
    return run(torchrun, command, options.result, options.notify)


def die_with(parent: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(1, int(signal.SIGTERM), 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if os.getppid() != parent:
        sys.exit(1)


def run(options: argparse.Namespace, command: list[str], result: Path, notify: int) -> int:
    first, nproc = options.node_rank * options.nproc_per_node, options.nproc_per_node
    workers = {first + local: start(options, command, first + local, local) for local in range(nproc)}
    failures: dict[int, int] = {}
    closed: list[int] = []
    deadline = float("inf")
    try:
        while workers:
            for rank, worker in list(workers.items()):
                code = worker.poll()
                if code is None:
                    continue
                del workers[rank]
                if code:
                    failures[rank] = code
                    pids[rank] = worker.pid
            if failures and not closed and workers:
                result.with_suffix(".ending").touch()
                os.write(notify, b"x")
                closed = [worker.pid for worker in workers.values()]
                deadline = time.monotonic() + CLOSE_SECONDS
                for worker in workers.values():
                    worker.terminate()
            if time.monotonic() > deadline:
                for worker in workers.values():
                    worker.kill()
            time.sleep(0.01)
    finally:
        for worker in workers.values():
            worker.kill()
    content = {
        "outcome": "failed" if failures else "finished",
        "failures": [
            {"rank": rank, "exitCode": code, "pid": pids[rank], "message": None, "traceback": None}
            for rank, code in failures.items()
        ],
        "closed": closed,
    }
    partial = result.with_suffix(".partial")
    partial.write_text(json.dumps(content))
    partial.rename(result)
    return 1 if failures else 0


pids: dict[int, int] = {}


def start(options: argparse.Namespace, command: list[str], rank: int, local: int) -> subprocess.Popen[bytes]:
    logs = Path(options.log_dir, options.rdzv_id.replace("/", "_"), "attempt_0", str(local))
    logs.mkdir(parents=True)
    environment = {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(options.nnodes * options.nproc_per_node),
        "MASTER_ADDR": options.master_addr,
        "MASTER_PORT": str(options.master_port),
        "RDZV_ID": options.rdzv_id,
    }
    with (logs / "stdout.log").open("wb") as out, (logs / "stderr.log").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, *command], stdout=out, stderr=err, env=environment, start_new_session=True
        )


if __name__ == "__main__":
    sys.exit(main())
