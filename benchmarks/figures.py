"""Ratios, their median, and how sure we are of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median


@dataclass(frozen=True)
class Estimate:
    """The median of paired measurements.

    Attributes:
        median: The estimate.
        low: Lower end of the 95 % interval.
        high: Upper end.
        pairs: Number of measurements.
    """

    median: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        """Return the median and its interval."""
        return f"{self.median:.3g} ({self.low:.3g} to {self.high:.3g})"


def estimate(values: Sequence[float]) -> Estimate:
    """Return median and 95 % interval by order statistics, which assume nothing of the distribution.

    With fewer than six values no such interval exists; the smallest and the largest stand in.
    """
    ordered, count = sorted(values), len(values)
    # The median lies outside (k-th smallest, k-th largest) with probability 2 * P(Binomial(count, 1/2) < k).
    k, outside = 0, 0.0
    while k < count // 2:
        outside += 2 * comb(count, k) / 2**count
        if outside > 0.05:
            break
        k += 1
    k = max(k, 1)
    return Estimate(median(ordered), ordered[k - 1], ordered[-k], count)


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        what: What is compared.
        figure: The result in words.
        bar: What it should be.
        passed: Whether it is; None where nothing is asked.
        detail: The figures behind it.
    """

    what: str
    figure: str
    bar: str = ""
    passed: bool | None = None
    detail: str = ""


def at_least(what: str, ratios: Sequence[float], bar: float, detail: str) -> Row:
    """Return a line that fails only if the interval's upper end is below `bar`."""
    found = estimate(ratios)
    return Row(what, str(found), f">= {bar:g}", found.high >= bar, f"{found.pairs} pairs; {detail}")


def at_most(what: str, ratios: Sequence[float], bar: float, detail: str) -> Row:
    """Return a line that fails only if the interval's lower end is above `bar`."""
    found = estimate(ratios)
    return Row(what, str(found), f"<= {bar:g}", found.low <= bar, f"{found.pairs} pairs; {detail}")
