"""The agent as one file that any image with Python runs: a zip archive of its package and the start in a pod."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ddpk8s.render.archive import File
from ddpk8s.render.errors import RenderError

_PACKAGE = "ddpk8s_agent"
_START = Path(__file__).parent / "templates" / "pod_main.py.txt"


@cache
def agent_files() -> tuple[File, ...]:
    """Return the files of the agent, read from the installed package, which is not imported.

    Raises:
        RenderError: it is not installed.
    """
    found = find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise RenderError(
            f"the package {_PACKAGE} is not installed", "install ddpk8s again; it is a part of it"
        )
    root = Path(found.submodule_search_locations[0])
    files = [
        File(f"{_PACKAGE}/{path.relative_to(root).as_posix()}", False, path.read_bytes())
        for path in root.rglob("*.py")
    ]
    return (*sorted(files), File("__main__.py", False, _START.read_bytes()))
