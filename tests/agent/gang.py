"""Several agents on this machine, as several pods: one directory each, one shared volume."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ddpk8s_agent.preflight import free_port
from tests.agent.harness import PATIENCE, Ended, Job, alive, until

STANDIN = str(Path(__file__).with_name("standin.py"))
# Short, so that a test takes seconds; the relations between them are those of the protocol.
TIMING = {"heartbeat": 0.2, "peer_deadline": 2.0, "teardown": 1.0, "eof_is_death": 1.0, "say_waiting": 0.5}

# Workers that meet in every step, as ranks do in a collective; who misses a peer says what gloo says.
TRAINS = """
    import traceback
    def pid_of(rank):
        wait_for(f"pid-{rank}-{ATTEMPT}")
        return int(Path(os.environ["DIRECTORY"], f"pid-{rank}-{ATTEMPT}").read_text())
    def gone(rank, pid):
        if Path(os.environ["DIRECTORY"], f"left-{rank}-{ATTEMPT}").exists(): return True
        try: return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError: return True
    def all_reduce():
        if any(gone(*peer) for peer in peers.items()):
            raise RuntimeError(
                "[../third_party/gloo/gloo/transport/tcp/pair.cc:561] Connection closed by peer [127.0.0.1]:1177")
        time.sleep(0.01)
    touch(f"pid-{RANK}-{ATTEMPT}", os.getpid())
    if ATTEMPT >= %d: sys.exit(0)
    peers = {rank: pid_of(rank) for rank in range(int(os.environ["WORLD_SIZE"])) if rank != RANK}
    def train():
        for step in range(1, 10**6):
            if step == 5: touch(f"trains-{RANK}-{ATTEMPT}")
            if step == 10: fault(step)
            all_reduce()
    def fault(step):
%s
    train()
"""


class Gang(Job):
    """A job on several nodes: its directory and script are those of `Job`."""

    def __init__(self, directory: Path, nnodes: int = 2, nproc: int = 2, *, torch: bool = False) -> None:
        super().__init__(directory)
        self.nodes: dict[int, subprocess.Popen[str]] = {}
        self.ended: dict[int, Ended] = {}
        self.timing: dict[str, float] = dict(TIMING)
        self.environment: dict[int, dict[str, str]] = {}
        self.prefix: dict[int, list[str]] = {}
        self.document |= {
            "nnodes": nnodes,
            "nprocPerNode": nproc,
            "gangPort": free_port(),
            "checkpointDirectory": str(directory / "shared"),
            "maxRestarts": 3,
            "startDeadlineSeconds": 60,
        }
        if not torch:
            self.document["shim"] = STANDIN

    @property
    def nnodes(self) -> int:
        """Number of nodes."""
        return int(self.document["nnodes"])

    def folder(self, node: int) -> Path:
        """Return the directory of a node: its emptyDir."""
        return self.directory / f"node-{node}"

    def start_node(self, node: int, **changes: Any) -> "subprocess.Popen[str]":
        """Start the agent of one node, or start it again."""
        folder = self.folder(node)
        folder.mkdir(exist_ok=True)
        document = {
            **self.document,
            "stateDirectory": str(folder / "state"),
            "terminationMessagePath": str(folder / "word.json"),
            **changes,
        }
        plan = folder / "agent.json"
        plan.write_text(json.dumps(document))
        environment = {
            **os.environ,
            "DDPK8S_NODE_RANK": str(node),
            "DDPK8S_AGENT_TIMING": ",".join(f"{name}={value}" for name, value in self.timing.items()),
            **self.environment.get(node, {}),
        }
        # Files, not pipes: who reads them last loses nothing, and nobody waits for a reader.
        with (folder / "out").open("a") as out, (folder / "err").open("a") as err:
            agent = subprocess.Popen(
                [*self.prefix.get(node, []), sys.executable, "-m", "ddpk8s_agent", "--plan", str(plan)],
                stdout=out,
                stderr=err,
                text=True,
                env=environment,
            )
        self.nodes[node] = agent
        self.agents.append(agent)
        return agent

    def start_all(self) -> "Gang":
        """Start the agents of all nodes."""
        for node in range(self.nnodes):
            self.start_node(node)
        return self

    def err(self, node: int = 0) -> str:
        """Return what a node's agents have said so far."""
        path = self.folder(node) / "err"
        return path.read_text() if path.exists() else ""

    def said(self, text: str, node: int = 0) -> None:
        """Wait until an agent says something."""
        until(lambda: text in self.err(node), f"{text!r} of node {node}, which said:\n{self.err(node)}")

    def end_node(self, node: int) -> Ended:
        """Wait for the end of a node's agent."""
        agent = self.nodes[node]
        try:
            agent.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"node {node} does not end:\n{self.all_err()}") from None
        word = self.folder(node) / "word.json"
        content = json.loads(word.read_text()) if word.exists() else {}
        self.ended[node] = Ended(
            agent.returncode, (self.folder(node) / "out").read_text(), self.err(node), content
        )
        return self.ended[node]

    def end_all(self) -> list[int]:
        """Wait for the end of all agents; return their codes."""
        return [self.end_node(node).code for node in sorted(self.nodes)]

    def all_err(self) -> str:
        """Return what all nodes said, for a test that fails."""
        return "\n".join(f"--- node {node}\n{self.err(node)}" for node in range(self.nnodes))

    def kill_node(self, node: int) -> None:
        """Kill an agent and everything below it, as the end of a container does."""
        agent = self.nodes[node]
        marker = f"DDPK8S_STATUS_DIR={self.folder(node)}/state/".encode()
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        end = time.monotonic() + 10
        while time.monotonic() < end and (left := self._with(marker)):
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def ledger(self) -> dict[str, Any]:
        """Return the ledger on the shared volume."""
        content = json.loads((self.directory / "shared" / ".ddpk8s" / "run-1.json").read_text())
        assert isinstance(content, dict)
        return content

    def kinds(self) -> dict[int, str]:
        """Return what each attempt came to."""
        return {int(attempt): record["kind"] for attempt, record in self.ledger()["records"].items()}

    def read(self, path: Path) -> dict[str, Any]:
        """Return the JSON object in a file."""
        content = json.loads(path.read_text())
        assert isinstance(content, dict)
        return content

    def kept(self, name: str) -> Any:
        """Return a part of the ledger on the shared volume; None while it is not there."""
        path = self.directory / "shared" / ".ddpk8s" / "run-1.json"
        return self.read(path).get(name) if path.exists() else None

    def said_out(self, text: str, node: int = 0) -> None:
        """Wait until an agent prints something."""
        until(lambda: text in (self.folder(node) / "out").read_text(), f"{text!r} of node {node}")

    def twin(self, node: int, prefix: list[str] | None = None, **changes: Any) -> "Gang":
        """Start another agent for a node rank, in a pod of its own; return what sees to that pod."""
        other = Gang(self.directory / f"twin-{len(self.agents)}")
        other.directory.mkdir()
        other.document, other.timing = {**self.document}, self.timing
        other.prefix[node] = prefix or []
        self.agents.append(other.start_node(node, **changes))
        return other

    def touch(self, name: str) -> None:
        """Make a file that workers wait for."""
        (self.directory / name).touch()

    def processes(self) -> list[int]:
        """Return the pids of this job's processes below torchrun, orphans included."""
        return self._with(f"DIRECTORY={self.directory}".encode(), b"DDPK8S_STATUS_DIR=")

    def trains(self, fault: str = "pass", attempts: int = 1) -> "Gang":
        """Write a script that trains for ever, but for a fault in step 10; later attempts end well at once."""
        self.script(TRAINS % (attempts, textwrap.indent(textwrap.dedent(fault).strip(), " " * 8)))
        return self

    def train_all(self) -> "Gang":
        """Start all nodes, and wait until all ranks of the first attempt train."""
        self.start_all()
        ranks = range(self.nnodes * int(self.document["nprocPerNode"]))
        self.wait(*(f"trains-{rank}-0" for rank in ranks))
        return self

    def pid(self, rank: int, attempt: int = 0) -> int:
        """Return the pid of a worker that trains."""
        return self.number(f"pid-{rank}-{attempt}")

    def outcome(self) -> tuple[list[int], dict[int, str]]:
        """Wait for the end of all agents; return their codes, and what each attempt came to."""
        codes = self.end_all()
        assert self.processes() == [], self.all_err()
        return codes, self.kinds()

    def why(self, attempt: int = 0) -> str:
        """Return what the ledger says of an attempt."""
        return str(self.ledger()["records"][str(attempt)]["why"])

    def _with(self, *markers: bytes) -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                environment = (entry / "environ").read_bytes()
                if all(marker in environment for marker in markers) and alive(int(entry.name)):
                    found.append(int(entry.name))
        return found
