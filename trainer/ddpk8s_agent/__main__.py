"""`python -m ddpk8s_agent --plan agent.json`; `start` is also the zipapp's entry."""

import os
import sys

from ddpk8s_agent.signals import StopRequest


def start() -> None:
    """Run the agent and leave with its exit code."""
    stop = StopRequest()
    stop.install()  # before anything that takes time: PID 1 has no default actions
    from ddpk8s_agent.cli import main

    code = main(sys.argv[1:], stop)
    os._exit(code)  # the console's thread may hang in a write that nobody reads


if __name__ == "__main__":
    start()
