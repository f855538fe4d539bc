"""The agent's command line, and what its ends look like from outside."""

import argparse
import traceback
from pathlib import Path

from ddpk8s_agent import exitcodes
from ddpk8s_agent.agent import Agent
from ddpk8s_agent.console import Console
from ddpk8s_agent.plan import Mistake, load_plan
from ddpk8s_agent.processes import become_subreaper, terminate_with_parent
from ddpk8s_agent.signals import StopRequest


def main(arguments: list[str], stop: StopRequest) -> int:
    """Run the agent; return its exit code."""
    parser = argparse.ArgumentParser(prog="ddpk8s_agent", description="Run one job on this node.")
    parser.add_argument("--plan", type=Path, required=True, help="JSON file with what is to run")
    parser.add_argument("--parent", type=int, help="stop, as by SIGTERM, when this parent process dies")
    parser.add_argument(
        "--keep-fd", type=int, action="append", default=[], help="file descriptor to hold to the end"
    )
    options = parser.parse_args(arguments)
    console = Console()
    try:
        if options.parent is not None and not terminate_with_parent(options.parent):
            stop.request()
        become_subreaper()
        return Agent(load_plan(options.plan), stop, console, tuple(options.keep_fd)).run()
    except Mistake as mistake:
        console.mistake(mistake.message, mistake.hint)
        return exitcodes.MISTAKE
    except Exception:
        console.say(traceback.format_exc())
        console.say("this is a bug of the agent; please report it with the lines above")
        return exitcodes.BUG
    finally:
        console.close()
