"""`ddpk8s version`."""

from ddpk8s import __version__
from ddpk8s.cli.options import emit


def version() -> None:
    """Print the version."""
    emit(f"ddpk8s {__version__}")
