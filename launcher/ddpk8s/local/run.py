"""`ddpk8s run`, in order: lock, identity, substitution, agents, summary."""

import os
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ddpk8s.errors import DdpError
from ddpk8s.local.agent import STOPPED, Start, agent_command
from ddpk8s.local.agents import Agents
from ddpk8s.local.directory import BASE, RunDirectory, make_base, new_run_id
from ddpk8s.local.display import Display, open_display
from ddpk8s.local.identity import Identity, choose_run, learned, newest_with_steps
from ddpk8s.local.machine import free_port, this_machine
from ddpk8s.local.nodes import agent_environment, size
from ddpk8s.local.stopper import Stopper
from ddpk8s.local.substitute import Wish, substitute
from ddpk8s.local.summary import Outcome, failure_lines, newest_step, read_json, result_lines, shown
from ddpk8s.local.volumes import Volumes
from ddpk8s.render.agent_plan import Place, agent_plan, job_directory, training_file
from ddpk8s.spec.job import TrainingJob

_LAST_WORD = "termination.json"
_TERMINAL_PROGRESS_SECONDS = "0.5"
_FREE_REPLACEMENTS = 3
"""Agents that may be killed, as pods may be lost, besides one for each restart that the job allows."""


@dataclass(frozen=True)
class Options:
    """What the user asks for besides the job file.

    Attributes:
        wish: Nodes and processes.
        fresh: A new run, whatever was before.
        resume: The run before goes on, whatever changed.
        quiet: Only errors and the summary.
    """

    wish: Wish = field(default_factory=Wish)
    fresh: bool = False
    resume: bool = False
    quiet: bool = False


class LocalRun:
    """One `ddpk8s run` of a job in the current directory."""

    def __init__(self, job: TrainingJob, code_base: Path, options: Options) -> None:
        """Take the job as written; `spec.entrypoint.code` is relative to `code_base`."""
        here = Path.cwd()
        self.job = job
        self.name = job.metadata.name
        self.options = options
        self.volumes = Volumes(job, here, BASE / "volumes")
        self.machine = this_machine()
        self.local = substitute(job, self.machine, self.volumes, options.wish, os.environ)
        self.nodes = range(self.local.job.spec.topology.nnodes)
        self.directory = RunDirectory(here / BASE / "runs" / self.name)
        code = job.spec.entrypoint.code if job.spec.entrypoint else None
        self.working_directory = (here / code_base / code).resolve() if code else here
        checkpoints = job_directory(self.local.job)
        self.job_directory = Path(checkpoints) if checkpoints else None

    def run(self) -> int:
        """Run the job to its end; return the exit code of node 0's agent, if it has one.

        Raises:
            DdpError: the job is running already, or the directory cannot be used.
        """
        stopper = Stopper(saves=self.job.spec.training is not None)
        stopper.install()
        try:
            make_base(Path.cwd() / BASE)
            self.directory.lock({})
            identity = self._identify()
            plans = self._write_files(identity.run_id)
        except OSError as error:
            raise DdpError(f"cannot write to {BASE}: {error.filename}: {error.strerror}") from error
        with open_display(quiet=self.options.quiet) as display:
            for line in (*self.local.lines, *identity.lines, self._start_line(identity.run_id)):
                display.note(line)
            began = time.monotonic()
            node, code = self._watch_agents(plans, display, stopper)
        outcome = self._conclude(identity.run_id, node, code, time.monotonic() - began)
        finished = outcome.exit_code == 0
        for line in result_lines(outcome) if finished else failure_lines(outcome):
            print(line, file=sys.stdout if finished else sys.stderr)
        return outcome.exit_code

    def _identify(self) -> Identity:
        """Return which run this is, and note it where the next one looks."""
        before = self._with_step(self.directory.read_record())
        older = self._with_step(newest_with_steps(before))
        if older.get("step") or self.job_directory is None:  # else its checkpoints are gone meanwhile
            before = older
        fresh, resume = self.options.fresh, self.options.resume
        identity = choose_run(before, self.job, new_run_id(), fresh=fresh, resume=resume)
        self.directory.note({"runId": identity.run_id})
        step = before.get("step") if identity.continued else None
        kept = before.pop("before", None)
        if not identity.continued:
            kept = before or None
        self._record(identity.run_id, state="running", step=step, started=time.time(), before=kept)
        return identity

    def _with_step(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record with the step that its run can be continued from: what was killed had no last word."""
        known = self.job_directory is None or record.get("state") == "finished" or not record.get("runId")
        step = record.get("step") if known else newest_step(self.job_directory, record["runId"])
        return {**record, "step": step} if record else {}

    def _record(self, run_id: str, **facts: Any) -> None:
        content = {"schema": 1, "job": self.name, "runId": run_id, "learned": learned(self.job)}
        self.directory.write("run.json", content | facts)

    def _write_files(self, run_id: str) -> list[Path]:
        """Make the volumes' directories and the agents' files; return each node's plan."""
        for volume in self.job.spec.storage:
            self.volumes.directory(volume.name).mkdir(parents=True, exist_ok=True)
        training = training_file(self.local.job, run_id)
        if training is not None:
            self.directory.write("training.json", training)
        place = Place(
            training_file=str(self.directory.path / "training.json"),
            state_directory="",
            termination_file="",
            working_directory=str(self.working_directory),
            shared_memory=False,
            hints=self.local.hints,
            gang_port=free_port(but=self.job.spec.topology.master_port) if len(self.nodes) > 1 else None,
            launch_id=secrets.token_hex(8),
        )
        return [self._write_plan(run_id, node, place) for node in self.nodes]

    def _write_plan(self, run_id: str, node: int, place: Place) -> Path:
        """Make the files of a node's agent; return its plan."""
        state = self.directory.state(run_id, node)
        state.mkdir(parents=True, exist_ok=True)
        word = state / _LAST_WORD
        word.unlink(missing_ok=True)
        place = replace(place, state_directory=str(state), termination_file=str(word))
        return self.directory.write("agent.json", agent_plan(self.local.job, run_id, place), node)

    def _start_line(self, run_id: str) -> str:
        logs = shown(self.directory.state(run_id))
        if len(self.nodes) > 1:
            others = "node-1" if len(self.nodes) == 2 else "node-*"
            logs += f" and {shown(self.directory.path / others / run_id)}"
        return f"{self.name}: starting {size(self.local.job)}, logs in {logs}"

    def _watch_agents(self, plans: Sequence[Path], display: Display, stopper: Stopper) -> tuple[int, int]:
        """Run the agents to their end, show their output and pass on signals.

        Returns:
            The node whose agent speaks for the run, and its exit code.
        """
        if stopper.asked:
            return 0, STOPPED
        environment = dict(os.environ)
        if sys.stderr.isatty() and not self.options.quiet:
            environment.setdefault("DDPK8S_PROGRESS_SECONDS", _TERMINAL_PROGRESS_SECONDS)
        lock = self.directory.lock_fd
        starts = [
            Start(
                agent_command(plan, lock),
                agent_environment(self.local.job, node, self.machine, environment),
                keep_fd=lock,
            )
            for node, plan in enumerate(plans)
        ]
        replacements = self.job.spec.failure_policy.max_restarts + _FREE_REPLACEMENTS
        agents = Agents(
            starts, stopper, lambda text: display.write("stderr", text), replacements=replacements
        )
        for line in agents.lines():
            if news := stopper.news():
                display.note(news)
            if line is not None:
                display.show(line)
            stopper.kill_if_deaf()
        return agents.result()

    def _conclude(self, run_id: str, node: int, code: int, seconds: float) -> Outcome:
        """Return how it ended, and write it down for the next run."""
        states = [self.directory.state(run_id, rank) for rank in self.nodes]
        word = read_json(states[node] / _LAST_WORD)
        nproc = self.local.job.spec.nproc_per_node
        outcome = Outcome(
            self.name, run_id, code, word, states, self.job_directory, seconds, nproc=nproc, node=node
        )
        before = self.directory.read_record()
        saved = newest_step(self.job_directory, run_id)
        told = word.get("step") or before.get("step")
        # With checkpoints of ours only those count: steps that were not saved are gone.
        step = told if self.job_directory is None or outcome.state == "finished" else saved
        facts = {name: before.get(name) for name in ("started", "before")}
        facts |= {"ended": time.time(), "exitCode": code, "lastWord": word}
        self._record(run_id, state=outcome.state, step=step, **facts)
        return outcome
