"""Where a line was read: keys of `sources.json`, and of the profile's own `sources`, to addresses."""

import json
from functools import cache
from pathlib import Path

from ddpk8s.fabric.model import Profile


@cache
def known_sources() -> dict[str, str]:
    """Return the addresses of the sources that come with the launcher, by key."""
    text = (Path(__file__).parent / "sources.json").read_text(encoding="utf-8")
    return {str(key): str(address) for key, address in json.loads(text).items()}


def source_of(profile: Profile, key: str) -> str:
    """Return the address of a source; what is no key stands for itself."""
    return profile.sources.get(key) or known_sources().get(key, key)
