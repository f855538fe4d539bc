"""Every error a user can meet, with the exit code it ends the command with.

DdpError (1)          something went wrong that is not the user's file
└── SpecError (2)     a mistake in the job file or on the command line, or a run that may not start as it is
    └── SpecErrors    all mistakes of one job file
"""

from collections.abc import Sequence
from typing import Any


class DdpError(Exception):
    """An error for a person: what, and after `hint:` how to mend it."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class SpecError(DdpError):
    """A mistake in the job file or on the command line."""

    exit_code = 2


class SpecErrors(SpecError):
    """All mistakes of one job file; `str()` is the full text as printed, one entry after the other."""

    def __init__(self, errors: Sequence[Any]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = list(errors)
