"""How long the whole gang has been silent. One rank may be slow; silence alone never ends anything."""

from collections.abc import Iterable

from ddpk8s_agent.gang.roster import Peer


def silence(peers: Iterable[Peer], now: float, started: float, *, sees_start: bool) -> float | None:
    """Return the seconds since any rank gave a sign of life, or None if that means nothing.

    Args:
        peers: The members, with what they last said of their ranks.
        now: The time.
        started: When the attempt started.
        sees_start: Whether ranks give signs from their very start. Where signs are found by a regular expression,
            they count only after the first one: the expression may be wrong.
    """
    ages = []
    for peer in peers:
        for rank in peer.ranks:
            _, _, age, ever = rank
            if ever or sees_start:
                ages.append(float(age) + now - peer.ranks_at)
    if not ages:
        return now - started if sees_start else None
    return min(min(ages), now - started)
