"""Stacks: of real processes, and as faulthandler writes them."""

import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.agent.harness import until

from ddpk8s_agent import stacks

SITE = "/opt/python/lib/python3.12/site-packages"
LIBRARY = "/usr/lib/python3.12"


def dump(*frames: str, before: tuple[str, ...] = ()) -> list[str]:
    """Return a log that ends with faulthandler's output; `frames` are those of the main thread."""
    return [
        "step 5",
        "Fatal Python error: Aborted",
        "",
        *before,
        "Current thread 0x00007f5c91fbb740 (most recent call first):",
        *frames,
        "",
        "Extension modules: numpy._core._multiarray_umath, torch._C (total: 2)",
    ]


def waits(*frames: str) -> bool | None:
    return stacks.hung_rank(0, 5, 1.0, dump(*frames), stopped=False).waits


def test_the_frames_of_the_main_thread_are_found_among_those_of_others() -> None:
    other = (
        "Thread 0x00007f5c8bfff6c0 (most recent call first):",
        f'  File "{LIBRARY}/threading.py", line 355 in wait',
        "",
    )
    log = dump('  File "train.py", line 9 in step', '  File "train.py", line 20 in <module>', before=other)
    assert stacks.find_stack(log) == [
        'File "train.py", line 9 in step',
        'File "train.py", line 20 in <module>',
    ]


def test_the_newest_stack_counts_when_an_earlier_process_left_one_too() -> None:
    old = dump('  File "old.py", line 1 in f')
    assert stacks.find_stack([*old, *dump('  File "new.py", line 2 in g')]) == ['File "new.py", line 2 in g']


@pytest.mark.parametrize(
    "log",
    [
        [],
        ["step 5", "step 6"],
        ["Fatal Python error: Aborted"],
        [
            "Fatal Python error: Segmentation fault",
            "",
            "Current thread 0x1 (most recent call first):",
            '  File "x", line 1 in f',
        ],
        [
            "Fatal Python error: Aborted",
            "",
            "Current thread 0x1 (most recent call first):",
            "  <no Python frame>",
        ],
        ["Fatal Python error: Aborted", "", "\x00\x00", "  File nonsense", "Current thread"],
    ],
)
def test_there_is_no_stack_when_nothing_of_the_kind_is_in_the_log(log: list[str]) -> None:
    rank = stacks.hung_rank(3, None, 2.0, log, stopped=False)
    assert (rank.stack, rank.waits) == ((), None)


@pytest.mark.parametrize(
    "frames",
    [
        (
            f'  File "{SITE}/torch/distributed/distributed_c10d.py", line 3000 in all_reduce',
            '  File "train.py", line 4 in step',
        ),
        (
            f'  File "{SITE}/torch/_ops.py", line 1 in __call__',
            f'  File "{SITE}/torch/distributed/_functional_collectives.py", line 2 in wait_tensor',
        ),
        (f'  File "{SITE}/torch/autograd/graph.py", line 824 in _engine_run_backward',),
        ('  File "train.py", line 7 in all_reduce', '  File "train.py", line 9 in <module>'),
        (f'  File "{LIBRARY}/threading.py", line 355 in wait', '  File "mine/comm.py", line 7 in barrier'),
    ],
)
def test_a_rank_waits_for_others_when_it_stands_in_a_collective(frames: tuple[str, ...]) -> None:
    assert waits(*frames) is True


@pytest.mark.parametrize(
    "frames",
    [
        ('  File "train.py", line 4 in compute',),
        (
            f'  File "{LIBRARY}/selectors.py", line 415 in select',
            f'  File "{LIBRARY}/multiprocessing/connection.py", line 1136 in wait',
            f'  File "{LIBRARY}/multiprocessing/connection.py", line 440 in _poll',
            f'  File "{SITE}/torch/utils/data/dataloader.py", line 1275 in _try_get_data',
        ),
        (
            f'  File "{LIBRARY}/threading.py", line 355 in wait',
            f'  File "{LIBRARY}/queue.py", line 171 in get',
            '  File "load.py", line 1 in batch',
        ),
        (f'  File "{LIBRARY}/subprocess.py", line 1264 in wait', '  File "load.py", line 1 in download'),
    ],
)
def test_a_rank_does_not_wait_for_others_when_it_waits_for_data(frames: tuple[str, ...]) -> None:
    assert waits(*frames) is False


def test_nothing_is_said_of_where_a_stopped_rank_waits() -> None:
    log = dump('  File "train.py", line 7 in all_reduce')
    assert stacks.hung_rank(0, 5, 1.0, log, stopped=True).waits is None


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[dict[int, "subprocess.Popen[bytes]"]]:
    """Start a rank that computes, one that waits, one that is stopped, and one that ignores SIGABRT."""
    ends = ("compute()", "all_reduce()", "os.kill(os.getpid(), signal.SIGSTOP)", "ignores()")
    script = """
        import os, pathlib, signal, sys, time
        def compute():
            while True: pass
        def all_reduce(): time.sleep(600)
        def ignores():
            signal.signal(signal.SIGABRT, signal.SIG_IGN)
            pathlib.Path(sys.argv[1] + ".ignores").touch()
            time.sleep(600)
        pathlib.Path(sys.argv[1]).touch()
    """
    with ExitStack() as files:
        started = {}
        for rank, end in enumerate(ends):
            log = files.enter_context((tmp_path / f"{rank}.log").open("wb"))
            text = textwrap.dedent(script) + end
            command = [sys.executable, "-X", "faulthandler", "-c", text, str(tmp_path / str(rank))]
            started[rank] = subprocess.Popen(command, stderr=log)
        until(lambda: all((tmp_path / str(rank)).exists() for rank in started), "the ranks")
        until((tmp_path / "3.ignores").exists, "the rank that ignores SIGABRT")
        until(lambda: "\nState:\tT" in Path(f"/proc/{started[2].pid}/status").read_text(), "the stopped rank")
        yield started
        for process in started.values():
            process.kill()
            process.wait()


def test_each_rank_leaves_its_stack_and_no_core_when_it_is_aborted(
    ranks: dict[int, "subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    stopped = stacks.abort({rank: process.pid for rank, process in ranks.items()})
    assert stopped == {2}
    assert [ranks[rank].wait(10) for rank in (0, 1)] == [-signal.SIGABRT, -signal.SIGABRT]
    assert ranks[3].poll() is None, "only SIGKILL helps, which comes next"
    assert resource.prlimit(ranks[3].pid, resource.RLIMIT_CORE)[0] <= 1
    found = {
        rank: stacks.hung_rank(
            rank, 5, 1.0, (tmp_path / f"{rank}.log").read_text().splitlines(), stopped=False
        )
        for rank in (0, 1, 3)
    }
    assert (found[0].waits, found[0].stack[0].rpartition(" ")[2]) == (False, "compute")
    assert (found[1].waits, found[1].stack[0].rpartition(" ")[2]) == (True, "all_reduce")
    assert found[3].waits is None


def test_nothing_happens_when_a_rank_is_gone_already() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert stacks.abort({0: process.pid}) == set()
