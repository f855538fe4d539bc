"""The agents of several nodes as processes: read, replaced, ended and stopped together."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ddpk8s.local.agent import Line, Start
from ddpk8s.local.agents import Agents
from ddpk8s.local.stopper import Stopper

PATIENT = 600.0
WAITS = "sys.stdout.write('ready\\n'); sys.stdout.flush(); time.sleep(60)"


class Gang:
    """Agents that are Python programs of a line, and what came of them."""

    def __init__(self, directory: Path) -> None:
        self.stopper = Stopper(saves=False)
        self.told: list[str] = []
        self.lines: list[Line] = []
        self.pids: list[dict[int, int]] = []
        self.lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT)

    def agents(self, *programs: str, replacements: int = 3, patience: float = PATIENT) -> Agents:
        head = "import os, signal, sys, time; print('pid', os.getpid(), flush=True); "
        starts = [
            Start((sys.executable, "-c", head + program), {**os.environ, "NODE": str(node)}, self.lock)
            for node, program in enumerate(programs)
        ]
        return Agents(
            starts, self.stopper, self.told.append, replacements=replacements, patience_seconds=patience
        )

    def runs(self, agents: Agents) -> Iterator[Line]:
        """Yield the agents' lines but for those that say their pids."""
        end = time.monotonic() + 60
        for line in agents.lines():
            assert time.monotonic() < end, self.told
            if line is None:
                continue
            if line.text.startswith("pid "):
                self.pids.append({line.node: int(line.text.split()[1])})
                continue
            self.lines.append(line)
            yield line

    def ends(self, agents: Agents) -> tuple[int, int]:
        for _ in self.runs(agents):
            pass
        return agents.result()

    def pid(self, node: int) -> int:
        return next(pids[node] for pids in reversed(self.pids) if node in pids)

    def texts(self, node: int) -> list[str]:
        return [line.text for line in self.lines if line.node == node]


@pytest.fixture
def gang(tmp_path: Path) -> Iterator[Gang]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    gang = Gang(tmp_path)
    yield gang
    for number, handler in before.items():
        signal.signal(number, handler)
    os.close(gang.lock)
    for pids in gang.pids:
        for pid in pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_output_of_all_is_read_by_line_and_stream_up_to_a_last_line_without_end(gang: Gang) -> None:
    program = "print(os.environ['NODE'], 'out'); sys.stderr.write('err\\nhalf')"
    assert gang.ends(gang.agents(program, program, program)) == (0, 0)
    for node in range(3):
        assert sorted((line.stream, line.text) for line in gang.lines if line.node == node) == [
            ("stderr", "err"),
            ("stderr", "half"),
            ("stdout", f"{node} out"),
        ]
    assert gang.told == []


def test_an_agent_that_was_killed_is_started_again_and_the_others_live_on(gang: Gang, tmp_path: Path) -> None:
    done = tmp_path / "done"
    waits = f"""print('ready', flush=True)
while not os.path.exists({str(done)!r}): time.sleep(0.01)
"""
    agents = gang.agents(*[f"exec({waits!r})"] * 2)
    ready = 0
    for line in gang.runs(agents):
        ready += line.text == "ready"
        if ready == 2:
            os.kill(gang.pid(1), signal.SIGKILL)
            first = gang.pid(0)
        if ready == 3:
            done.touch()
    assert agents.result() == (0, 0)
    assert gang.told == [
        "node 1's agent was killed by SIGKILL; starting it again, as Kubernetes would replace the pod"
    ]
    assert gang.pid(0) == first
    assert gang.texts(1) == ["ready", "ready"]


def test_replacements_are_limited_and_then_the_job_ends(gang: Gang) -> None:
    dies = "os.kill(os.getpid(), signal.SIGSEGV)"
    waits = "signal.signal(signal.SIGTERM, lambda *_: os._exit(143)); time.sleep(60)"
    assert gang.ends(gang.agents(waits, dies, replacements=2, patience=0.0)) == (1, 139)
    assert [text.partition(";")[0] for text in gang.told] == ["node 1's agent was killed by SIGSEGV"] * 3
    assert "starting it again" in gang.told[1]
    assert gang.told[2].endswith("stopping the others, as Kubernetes ends the job")


def test_a_mistake_of_one_node_ends_the_others_and_is_the_end_of_the_run(gang: Gang) -> None:
    waits = "signal.signal(signal.SIGTERM, lambda *_: os._exit(143)); time.sleep(60)"
    assert gang.ends(gang.agents(waits, "sys.exit(78)", waits, patience=0.0)) == (1, 78)
    assert gang.told == [
        "node 1's agent ended with exit code 78; stopping the others, as Kubernetes ends the job"
    ]


def test_agents_that_end_together_need_no_help_and_node_0_speaks(gang: Gang) -> None:
    assert gang.ends(gang.agents("time.sleep(0.5); sys.exit(1)", "sys.exit(78)")) == (0, 1)
    assert gang.told == []


def test_a_node_that_waits_for_its_last_word_is_not_disturbed_by_one_that_trained(gang: Gang) -> None:
    assert gang.ends(gang.agents("time.sleep(0.5)", "sys.exit(0)", patience=0.0)) == (0, 0)
    assert gang.told == []


def test_the_others_speak_for_node_0_when_it_was_killed_after_their_end(gang: Gang, tmp_path: Path) -> None:
    mark, partial = str(tmp_path / "pid"), str(tmp_path / "partial")
    trains = f"open({partial!r}, 'w').write(str(os.getpid())); os.rename({partial!r}, {mark!r})"
    # A process that has ended stays in /proc until we have seen its exit code.
    waits = f"""
while not os.path.exists({mark!r}): time.sleep(0.01)
while os.path.exists('/proc/' + open({mark!r}).read()): time.sleep(0.01)
"""
    dies = f"exec({waits!r}); os.kill(os.getpid(), signal.SIGKILL)"
    assert gang.ends(gang.agents(dies, trains)) == (1, 0)
    assert gang.told == [], "there is no gang any more that a new one could join"


def test_an_only_agent_is_not_replaced(gang: Gang) -> None:
    assert gang.ends(gang.agents("os.kill(os.getpid(), signal.SIGKILL)")) == (0, 137)
    assert gang.told == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_stop_reaches_all_and_nobody_is_replaced(gang: Gang, number: signal.Signals) -> None:
    gang.stopper.install()
    stops = "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), os._exit(143)))"
    deaf = WAITS  # dies of the signal itself, as an agent does that is not ready yet
    agents = gang.agents(f"{stops}; {WAITS}", f"{stops}; {WAITS}", deaf)
    ready = 0
    for line in gang.runs(agents):
        ready += line.text == "ready"
        if ready == 3 and line.text == "ready":
            os.kill(os.getpid(), number)
    assert agents.result() == (0, 143)
    assert [gang.texts(node)[-1] for node in range(3)] == ["saved", "saved", "ready"]
    assert gang.told == []


def test_a_second_ctrl_c_asks_all_of_them_to_stop_at_once(gang: Gang) -> None:
    gang.stopper.install()
    hears = "; ".join(
        f"signal.signal(signal.{name}, lambda *_: (print('{name}', flush=True), {then}))"
        for name, then in (("SIGTERM", "None"), ("SIGQUIT", "os._exit(143)"))
    )
    agents = gang.agents(*[f"{hears}; {WAITS}"] * 2)
    for line in gang.runs(agents):
        seen = [other.text for other in gang.lines]
        if line.text in ("ready", "SIGTERM") and seen.count(line.text) == 2:
            os.kill(os.getpid(), signal.SIGINT)
    assert agents.result() == (0, 143)
    assert [gang.texts(node) for node in range(2)] == [["ready", "SIGTERM", "SIGQUIT"]] * 2
