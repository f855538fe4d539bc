"""The process tree, with real processes."""

import os
import subprocess
import sys
import time
from pathlib import Path

from ddpk8s_agent import processes, termination

TREE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
print(child.pid, flush=True)
time.sleep(99)
"""


def test_proc_and_ps_show_the_same_tree() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TREE], stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        by_proc, by_ps = processes.snapshot(), processes._snapshot_ps()
        assert {p.pid for p in processes.descendants(os.getpid(), by_proc)} >= {child.pid, grandchild}
        assert by_proc[grandchild] == by_ps[grandchild] == processes.Process(grandchild, child.pid, child.pid)
        assert child.pid in processes.worker_leaders(os.getpid())
        assert grandchild not in processes.worker_leaders(child.pid), "it shares its parent's group"
        processes.send([child.pid, grandchild], processes.signal.SIGKILL)


def test_reaping_strangers_leaves_the_status_of_our_own_child() -> None:
    script = """
import os, subprocess, sys, time
from ddpk8s_agent import processes
processes.become_subreaper()
own = subprocess.Popen([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
orphan = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import sys; sys.exit(3)'])"
subprocess.run([sys.executable, "-c", orphan])
for _ in range(100):
    processes.reap_strangers(own=own.pid)
    time.sleep(0.01)
assert own.wait() == -9, own.returncode
processes.reap_strangers()
try:
    os.waitpid(-1, os.WNOHANG)
    sys.exit("a stranger is left")
except ChildProcessError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_strays_are_only_those_with_the_marker(tmp_path: Path) -> None:
    environment = {**os.environ, "DDPK8S_STATUS_DIR": f"{tmp_path}/attempt-0/status"}
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"], env=environment) as stray:
        marker = f"DDPK8S_STATUS_DIR={tmp_path}/"
        while marker.encode() not in Path(f"/proc/{stray.pid}/environ").read_bytes():
            time.sleep(0.01)  # the child has not come to its exec yet
        assert processes.strays(marker) == [stray.pid]
        assert processes.strays(f"DDPK8S_STATUS_DIR={tmp_path}-other/") == []
        stray.kill()


def test_a_termination_message_fits_in_4_kib_and_stays_json(tmp_path: Path) -> None:
    path = tmp_path / "word.json"
    for message in ("x" * 10_000, 'ä\n"' * 5_000, "\x00" * 5_000, "short"):
        termination.write(str(path), {"reason": "R", "message": message, "rank": 3})
        data = path.read_bytes()
        assert len(data) <= termination.LIMIT_BYTES
        import json

        content = json.loads(data)
        assert content["rank"] == 3
        assert message.startswith(content["message"].removesuffix("..."))
    assert list(tmp_path.iterdir()) == [path]


def test_a_termination_message_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    termination.write(str(tmp_path / "no" / "word.json"), {"message": "m"})
    termination.write(None, {"message": "m"})
