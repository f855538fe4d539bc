"""Long series made short enough to draw, without losing what matters in them."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def thin(x: Floats, y: Floats, limit: int = 500) -> tuple[Floats, Floats]:
    """Return at most `limit` points that keep the lowest and highest of every stretch, and its gaps.

    Args:
        x: [points], ascending.
        y: [points]; NaN or infinity is a gap.
        limit: Most points returned.
    """
    y = np.where(np.isfinite(y), y, np.nan)
    if len(x) <= limit:
        return x, y
    kept: list[int] = []
    gaps = np.isnan(y)
    for indices in np.array_split(np.arange(len(x)), limit // 3 if gaps.any() else limit // 2):
        stretch = y[indices]
        hole = gaps[indices]
        found = {int(indices[hole.argmax()])} if hole.any() else set()
        if not hole.all():
            found |= {int(indices[np.nanargmin(stretch)]), int(indices[np.nanargmax(stretch)])}
        kept += sorted(found)
    return x[kept], y[kept]


def smooth(x: Floats, y: Floats, limit: int = 250) -> tuple[Floats, Floats]:
    """Return the trend: means of stretches, then an exponential mean over a twentieth of them.

    Points that are not finite leave a gap. With fewer than eight others there is no trend to speak of.
    """
    finite = np.isfinite(y)
    gaps, x, y = x[~finite], x[finite], y[finite]
    if len(x) < 8:
        return x[:0], y[:0]
    if len(x) > limit:
        cuts = np.linspace(0, len(x), limit + 1).astype(int)[:-1]
        counts = np.diff(np.append(cuts, len(x)))
        x, y = np.add.reduceat(x, cuts) / counts, np.add.reduceat(y, cuts) / counts
    keep = 1 - 1 / max(2.0, len(y) / 20)
    mean = weight = 0.0
    trend = np.empty_like(y)
    for index, value in enumerate(y):
        # Divided by the weights so far, or the trend would begin at zero.
        mean, weight = keep * mean + (1 - keep) * value, keep * weight + (1 - keep)
        trend[index] = mean / weight
    holes = np.unique(np.searchsorted(x, gaps))
    return np.insert(x, holes, np.nan), np.insert(trend, holes, np.nan)


def shares(x: Floats, parts: Floats, limit: int = 120) -> tuple[Floats, Floats]:
    """Return how a whole divides into parts along x.

    Args:
        x: [points], ascending.
        parts: [parts, points], for example seconds.
        limit: Most points returned; each is the sum of a stretch.

    Returns:
        The ends of the stretches [stretches], and shares that add up to 1 (or are all 0) [parts, stretches].
    """
    if len(x) > limit:
        cuts = np.linspace(0, len(x), limit + 1).astype(int)
        parts = np.add.reduceat(parts, cuts[:-1], axis=1)
        x = x[cuts[1:] - 1]
    total = parts.sum(axis=0)
    return x, np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)
