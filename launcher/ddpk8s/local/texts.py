"""Figures of a training in words, short enough for one line."""

from collections.abc import Iterator, Mapping
from typing import Any


def format_seconds(seconds: float) -> str:
    """Return a time for people: ``42s``, ``1m20s``, ``2h05m``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m"


def figures(progress: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a progress line tells of speed and loss, each with name or unit; what is absent is out."""
    for key, template in (
        ("epoch", "epoch {:.2f}"),
        ("loss", "loss {:.4f}"),
        ("learningRate", "lr {:.2e}"),
        ("samplesPerSecond", "{:.0f} samples/s"),
    ):
        value = progress.get(key)
        if value is not None:
            yield template.format(value) if _is_number(value) else f"{key} {value}"


def position(progress: Mapping[str, Any]) -> str:
    """Return where the training is: ``step 120/804``."""
    step, total = progress.get("step"), progress.get("total")
    if not step and not total:
        return ""  # still loading
    return f"step {step}/{total}" if total else f"step {step}"


def remaining(progress: Mapping[str, Any]) -> str:
    """Return how long it will take: ``eta 1m20s``; empty if nobody knows."""
    eta = progress.get("etaSeconds")
    return f"eta {format_seconds(float(eta))}" if isinstance(eta, int | float) else ""


def progress_line(progress: Mapping[str, Any]) -> str:
    """Return a progress line for people: ``step 120/804  epoch 0.45  loss 0.4312 ... eta 1m20s``."""
    phase = progress.get("phase", "training")
    parts = [position(progress), *figures(progress), remaining(progress)]
    if phase != "training":
        parts = [str(phase), position(progress)]
    return "  ".join(part for part in parts if part)


def evaluation_line(evaluation: Mapping[str, Any]) -> str:
    """Return the figures of an evaluation: ``accuracy 0.8731  loss 0.3120``."""
    numbers = ((key, value) for key, value in evaluation.items() if isinstance(value, float))
    return "  ".join(f"{key} {value:.4f}" for key, value in numbers)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
