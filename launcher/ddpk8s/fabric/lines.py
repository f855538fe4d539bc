"""The lines of a profile that count in a job, with parameters put in."""

from collections.abc import Mapping, Sequence
from typing import Any

from ddpk8s.fabric.model import Item, Line, Profile, Value
from ddpk8s.fabric.values import counts, substitute, substitute_in, values_of
from ddpk8s.spec.job import JobSpec, TrainingJob

ARCHITECTURE = "kubernetes.io/arch"


def own_names(spec: JobSpec) -> dict[str, str]:
    """Return the environment variables that a job sets itself, each with the field that does."""
    names = {secret.env: f"spec.secrets[{i}].env" for i, secret in enumerate(spec.secrets)}
    return names | {name: f"spec.env.{name}" for name in spec.env}


class Lines:
    """A profile in a job. A line that names a parameter without a value is left out."""

    def __init__(self, profile: Profile, job: TrainingJob) -> None:
        self.profile = profile
        self.job = job
        self.values = values_of(profile, job)

    def holds(self, line: Line | None) -> bool:
        """Return whether there is such a line and it counts."""
        return line is not None and counts(line, self.values, self.job.spec.topology.nnodes)

    def texts(self, lines: Sequence[Value]) -> list[Value]:
        """Return the lines of a list that count."""
        found = [self._text(line) for line in lines]
        return [line for line in found if line is not None]

    def mapping(self, lines: Mapping[str, Value]) -> dict[str, Value]:
        """Return the lines of a map that count; its keys may refer to parameters too."""
        found = {substitute(key, self.values): self._text(line) for key, line in lines.items()}
        return {key: line for key, line in found.items() if key is not None and line is not None}

    def values_in(self, lines: Mapping[str, Value]) -> dict[str, str]:
        """Return the values of a map's lines."""
        return {key: line.value for key, line in self.mapping(lines).items()}

    def item_lines(self, lines: Sequence[Item]) -> list[Item]:
        """Return the lines with parts of manifests that count."""
        found = [(line, substitute_in(line.item, self.values)) for line in lines if self.holds(line)]
        return [line.model_copy(update={"item": item}) for line, item in found if item is not None]

    def items(self, lines: Sequence[Item]) -> list[dict[str, Any]]:
        """Return the parts of manifests."""
        return [line.item for line in self.item_lines(lines)]

    def library_paths(self) -> list[str]:
        """Return the directories that libraries must be looked for in."""
        return [line.value for line in self.texts(self.profile.library_paths)]

    def prologue(self) -> tuple[str, ...]:
        """Return the lines of bash that run before the agent."""
        paths = ":".join(self.library_paths())
        # In front of what the image sets: a variable of the pod would replace it.
        export = f'export LD_LIBRARY_PATH="{paths}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
        lines = [line.value for line in self.texts(self.profile.prologue)]
        return (*([export] if paths else ()), *lines)

    def node_selector(self) -> dict[str, str]:
        """Return the labels that nodes must have."""
        architecture = self.profile.architecture
        labels = {ARCHITECTURE: architecture} if architecture is not None else {}
        return labels | self.values_in(self.profile.node_selector)

    def needs_root(self) -> bool:
        """Return whether our container must run as user 0, since capabilities do nothing for others."""
        return bool(self.texts(self.profile.capabilities)) or self.holds(self.profile.privileged)

    def _text(self, line: Value) -> Value | None:
        value = substitute(line.value, self.values) if self.holds(line) else None
        return None if value is None else line.model_copy(update={"value": value})
