"""The `failurePolicy` section: restarts and time limits."""

from datetime import timedelta

from ddpk8s.spec.base import Section, field
from ddpk8s.spec.names import Text
from ddpk8s.spec.values import Duration

SHUTDOWN_MARGIN = timedelta(seconds=5)
"""What is kept back of `gracePeriod`: processes still alive then are killed, so that the agent can report."""

PROGRESS_GROUPS = ("step", "total", "epoch", "loss", "lr")
"""Named groups that `progressRegex` may have."""


class FailurePolicy(Section):
    """What happens when something fails, and how long things may take."""

    max_restarts: int = field(
        "Failures after which the whole gang starts again from the newest checkpoint; one more ends the "
        "job. "
        "Lost and preempted pods do not count.",
        3,
        unit="restarts",
        ge=0,
        le=1000,
        example=3,
    )
    start_deadline: Duration = field(
        "How long the job may wait for all of its nodes, at the start and after a loss. Time in a queue "
        "does not count.",
        "15m",
        example="30m",
    )
    grace_period: Duration = field(
        "Time between the request to stop and the kill, in which a checkpoint is saved. The processes "
        "get 5s less.",
        "120s",
        example="120s",
    )
    ttl_after_finished: Duration | None = field(
        "Delete the job's objects so long after its end; absent, they stay.", None, example="24h"
    )
    active_deadline: Duration | None = field(
        "End the job when it has run for so long; absent, no limit.", None, example="72h"
    )
    hang_timeout: Duration | None = field(
        "No progress for so long is a failure. By default 20m with the bundled trainer; with a script of "
        "your own it is off.",
        None,
        example="20m",
    )
    progress_regex: Text | None = field(
        "Python regular expression that finds progress in the output of your own script: named groups "
        "`step` (required), `total`, `epoch`, `loss`, `lr`.",
        None,
        example=r"step (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>\S+)",
    )
