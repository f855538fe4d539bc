"""Cut samples sorted by length into groups of like cost.

A group of samples is padded to its longest one, so its cost is ``count x longest`` tokens. Groups are
contiguous in the sorted order: any other grouping of the same sizes pads more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

OVERHEAD_TOKENS = 128
"""What one more micro-batch costs beside its tokens (kernel launches, Python), in tokens of computation."""


@dataclass(frozen=True)
class Cut:
    """Groups of ascending sample lengths: group ``i`` is ``[bounds[i], bounds[i + 1])``."""

    lengths: Sequence[int]
    bounds: list[int]

    def costs(self) -> list[int]:
        """Return the padded tokens of each group."""
        return [(end - start) * self.lengths[end - 1] for start, end in pairwise(self.bounds)]


def _group_end(lengths: Sequence[int], start: int, cap: int) -> int:
    """Return the end of the largest group from `start` within `cap` padded tokens; one sample at least."""
    shortest = lengths[start]
    if shortest * 2 > cap:
        return start + 1
    # The longest sample lies between the first one and the one that the first one's length would allow.
    high = min(len(lengths), start + cap // shortest)
    low = start + max(1, cap // lengths[high - 1])
    while low < high:
        middle = (low + high + 1) // 2
        if (middle - start) * lengths[middle - 1] <= cap:
            low = middle
        else:
            high = middle - 1
    return min(low, len(lengths))


def _greedy(lengths: Sequence[int], cap: int, most: int) -> list[int] | None:
    """Return bounds of the fewest groups of at most `cap` tokens, or None when they are more than `most`."""
    bounds = [0]
    while bounds[-1] < len(lengths):
        if len(bounds) > most:
            return None
        bounds.append(_group_end(lengths, bounds[-1], cap))
    return bounds


def fewest_groups(lengths: Sequence[int], budget: int) -> int:
    """Return the number of groups that `budget` padded tokens demand; a longer sample stands alone."""
    bounds = _greedy(lengths, budget, len(lengths))
    return len(bounds) - 1 if bounds else 0


def cut(lengths: Sequence[int], groups: int, budget: int) -> Cut:
    """Cut ascending `lengths` into `groups` groups so that the costliest is as cheap as possible.

    No group is larger than `budget` tokens but one sample alone; `groups` must be enough for that. Fewer
    groups come back only when there are fewer samples than groups.
    """
    mean = -(-sum(lengths) // groups)
    low = min(budget, max(lengths[-1], mean))
    high = min(budget, max(low, -(-len(lengths) // groups) * lengths[-1]))
    best = _greedy(lengths, high, groups)
    while low < high:
        middle = (low + high) // 2
        bounds = _greedy(lengths, middle, groups)
        if bounds is None:
            low = middle + 1
        else:
            best, high = bounds, middle
    assert best is not None  # equal counts of the longest length fit, and so does the budget
    return _split_up(Cut(lengths, best), min(groups, len(lengths)))


def _split_up(found: Cut, groups: int) -> Cut:
    """Halve the costliest group until there are `groups`: no rank idles while another has work to share."""
    bounds = list(found.bounds)
    while len(bounds) - 1 < groups:
        costs = Cut(found.lengths, bounds).costs()
        divisible = (i for i in range(len(costs)) if bounds[i + 1] - bounds[i] > 1)
        widest = max(divisible, key=lambda i: costs[i])
        bounds.insert(widest + 1, (bounds[widest] + bounds[widest + 1] + 1) // 2)
    return Cut(found.lengths, bounds)


def cheapest_cut(lengths: Sequence[int], world_size: int, budget: int) -> Cut:
    """Cut ascending `lengths` for `world_size` ranks into as many micro-steps as make the whole cheapest.

    The cost of a micro-step is that of its dearest group, since ranks wait for each other, plus a constant;
    so one more step is taken when the budget demands it or when the padding saved pays for it.
    """
    total = sum(lengths)
    fewest = -(-fewest_groups(lengths, budget) // world_size)
    most = -(-len(lengths) // world_size)
    best, best_cost, best_steps = None, 0, fewest
    for steps in range(fewest, most + 1):
        # Stop when not even a cut without any padding would be cheaper, or when three in a row were not.
        floor = total // world_size + steps * OVERHEAD_TOKENS
        if best is not None and (floor >= best_cost or steps > best_steps + 3):
            break
        candidate = cut(lengths, steps * world_size, budget)
        costs = sorted(candidate.costs(), reverse=True)
        cost = sum(costs[::world_size]) + steps * OVERHEAD_TOKENS
        if best is None or cost < best_cost:
            best, best_cost, best_steps = candidate, cost, steps
    assert best is not None  # fewest <= most
    return best


def deal(found: Cut, samples: NDArray[np.int64], world_size: int) -> list[list[NDArray[np.int64]]]:
    """Deal groups out to ranks: ``[micro-step][rank]`` arrays of ids, empty where a rank has none.

    Dear groups meet dear ones in a micro-step, and each second one is dealt backwards, so ranks end together.
    The dearest come first: memory grows once.
    """
    groups = [samples[start:end] for start, end in pairwise(found.bounds)]
    costs = found.costs()
    by_cost = sorted(range(len(groups)), key=lambda i: (-costs[i], i))
    steps = []
    for number, first in enumerate(range(0, len(by_cost), world_size)):
        dealt = [groups[i] for i in by_cost[first : first + world_size]]
        dealt += [samples[:0]] * (world_size - len(dealt))
        steps.append(dealt[::-1] if number % 2 else dealt)
    return steps
