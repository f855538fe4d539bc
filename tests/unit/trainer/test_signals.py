import subprocess
import sys

CODE = """
import os, signal, sys
from ddpk8s_trainer.signals import StopRequest

class Late:
    def __del__(self, kill=os.kill, own=os.getpid(), term=signal.SIGTERM):
        kill(own, term)

stop = StopRequest()
stop.install()
for _ in range(3):
    os.kill(os.getpid(), signal.SIGTERM)
assert stop.requested
late = Late()
if sys.argv[1] == "outlast":
    stop.outlast()
sys.exit(143)
"""


def run(argument):
    return subprocess.run([sys.executable, "-c", CODE, argument], capture_output=True, check=False).returncode


def test_a_stopped_rank_keeps_its_exit_code_when_more_signals_come_while_python_ends():
    assert run("outlast") == 143
    # What it guards against: Python gives signals back before it takes its modules down.
    assert run("plain") == -15
