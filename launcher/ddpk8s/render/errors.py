"""What can be wrong with a job only when it is rendered."""

from collections.abc import Sequence

from ddpk8s.errors import SpecError
from ddpk8s.spec.problems import Problem


class RenderError(SpecError):
    """A job from which no objects can be made."""


class RenderProblems(RenderError):
    """All mistakes that rendering found, each with its field; whoever read the file knows their places."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(problem.message for problem in problems))
        self.problems = list(problems)
