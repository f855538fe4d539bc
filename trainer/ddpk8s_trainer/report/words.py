"""Numbers as people read them."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime


def duration(seconds: float | None) -> str:
    """Return a duration in its two largest units: `2 h 05 min`, `3 min 12 s`, `4.2 s`."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours:02d} h"
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def size(count: float | None) -> str:
    """Return a number of bytes as `1.5 GiB`."""
    if count is None or not math.isfinite(count):
        return "–"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def number(value: float | None, digits: int = 4) -> str:
    """Return a figure with so many significant digits: `0.1234`, `5e-5`, `12,345`."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    mantissa, e, exponent = f"{value:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def compact(value: float) -> str:
    """Return a count in five characters or so: `850`, `12.3k`, `1.5M`."""
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10 * factor or (factor > 1e3 and abs(value) >= factor):
            return f"{value / factor:.3g}{unit}"
    return number(value, 3)


def ticks(values: Sequence[float]) -> list[str]:
    """Return the texts of an axis, all in the same unit: `0.88`, `0.90`; `0`, `5k`, `10k`; `0`, `1e-4`."""
    largest = max((abs(value) for value in values), default=0.0)
    exponent = math.floor(math.log10(largest)) if largest > 0 else 0
    if exponent < -2:
        factor, unit = 10.0**exponent, f"e{exponent}"
    else:
        factor, unit = next(
            (f, u) for f, u in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")) if _fits(largest, f)
        )
    scaled = [value / factor for value in values]
    decimals = next((d for d in range(4) if all(abs(v - round(v, d)) < 1e-6 for v in scaled)), 3)
    return ["0" if value == 0 else f"{value:,.{decimals}f}{unit}" for value in scaled]


def _fits(largest: float, factor: float) -> bool:
    # Four digits are read as easily as "1.25k"; more are not.
    return factor == 1 or largest >= factor * (10 if factor == 1e3 else 1)


def percent(share: float | None) -> str:
    """Return a share (0 to 1) as `87.3 %`."""
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.1f} %"


def moment(time: float | None) -> str:
    """Return a Unix time in seconds as `2026-11-01 12:31:05` (UTC)."""
    return "–" if not time else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
