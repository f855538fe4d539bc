"""Everything that the objects of a job are made from."""

from collections.abc import Mapping
from dataclasses import dataclass

from ddpk8s.fabric import Additions
from ddpk8s.render import constants as c
from ddpk8s.render.archive import File
from ddpk8s.spec.job import JobSpec, TrainingJob


@dataclass(frozen=True)
class Context:
    """A job, and what was decided or read for it.

    Attributes:
        job: The job.
        run_id: Identity of the run.
        launch_id: Names this start of the run.
        extras: What its network needs.
        code: Files of the user's code, or None.
        agent: Files of the agent.
        host_network: Whether pods use the network of their node, by profile or pod template.
    """

    job: TrainingJob
    run_id: str
    launch_id: str
    extras: Additions
    code: tuple[File, ...] | None
    agent: tuple[File, ...]
    host_network: bool = False

    @property
    def name(self) -> str:
        """Name of the job."""
        return str(self.job.metadata.name)

    @property
    def spec(self) -> JobSpec:
        """The job's `spec`."""
        return self.job.spec

    @property
    def identity(self) -> dict[str, str]:
        """Labels by which the pods of this run are found, and no others."""
        return {c.JOB_LABEL: self.name, c.RUN_LABEL: self.run_id}

    def labels(self) -> dict[str, str]:
        """Return the labels of every object; the job's own may replace those that only inform."""
        common = {
            "app.kubernetes.io/instance": self.name,
            "app.kubernetes.io/managed-by": "ddpk8s",
            "app.kubernetes.io/name": "ddpk8s-training",
        }
        return dict(sorted({**common, **self.job.metadata.labels, **self.identity}.items()))

    def metadata(self, name: str, labels: Mapping[str, str] | None = None) -> dict[str, object]:
        """Return the metadata of an object of this job."""
        namespace = self.job.metadata.namespace
        merged = dict(sorted({**self.labels(), **(labels or {})}.items()))
        return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": merged}
