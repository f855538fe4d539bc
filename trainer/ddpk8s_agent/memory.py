"""How often the kernel killed something in this container because memory ran out (cgroups, both versions)."""

import re
from pathlib import Path

_FILES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def oom_kills() -> int:
    """Return the count since the container started; 0 where it cannot be read."""
    for name in _FILES:
        try:
            match = re.search(r"^oom_kill (\d+)", Path(name).read_text(encoding="utf-8"), re.MULTILINE)
        except OSError:
            continue
        if match:
            return int(match[1])
    return 0
