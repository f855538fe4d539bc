"""The user's own script: where it lies, and whether it is there."""

import posixpath
from collections.abc import Iterator
from pathlib import Path as FilePath

from ddpk8s.spec.describe import inline
from ddpk8s.spec.entrypoint import Entrypoint
from ddpk8s.spec.job import JobSpec, TrainingJob
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import Problem, error, warning
from ddpk8s.spec.secrecy import is_secret_value
from ddpk8s.spec.values import show

_E = "spec.entrypoint"


def check_entrypoint(spec: JobSpec) -> Iterator[Problem]:
    """Yield problems of `entrypoint` that need no look at files."""
    entrypoint = spec.entrypoint
    if entrypoint is None:
        return
    yield from _check_script(spec, entrypoint)
    if entrypoint.code is not None and entrypoint.code.startswith(("/", "~")):
        hint = "write it relative to the job file, as in ./src"
        yield error(f"{_E}.code", f"is {show(entrypoint.code)}, but must be relative to the job file", hint)
    for i, argument in enumerate(entrypoint.args):
        if is_secret_value(argument):
            path: Path = ("spec", "entrypoint", "args", i)
            hint = "give it by spec.secrets as an environment variable"
            yield error(path, "looks like a secret, and secrets must not stand in the job file", hint)


def _check_script(spec: JobSpec, entrypoint: Entrypoint) -> Iterator[Problem]:
    field, script, related = f"{_E}.script", entrypoint.script, [f"{_E}.code"]
    if not script.endswith(".py"):
        yield error(field, f"is {show(script)}, but must be a Python script", _mend_script(script))
    elif entrypoint.code is not None:
        if script.startswith("/") or ".." in script.split("/"):
            hint = f"write the path below {_E}.code, as in train.py"
            yield error(field, f"is {show(script)}, but must lie inside {_E}.code", hint, related)
    elif not script.startswith("/"):
        hint = (
            "set code: . to bring the job file's directory, or give an absolute path in the image or a volume"
        )
        yield error(field, f"is {show(script)}, a relative path, but {_E}.code is not set", hint, related)
    elif spec.volume_of(posixpath.normpath(script)) is None:
        hint = "mount a volume in spec.storage, unless the image holds it"
        yield warning(
            field, f"is {show(script)}, which lies in no volume of spec.storage", hint, ["spec.storage"]
        )


def _mend_script(script: str) -> str:
    """Return a hint for a command line in place of a script."""
    words = script.split()
    found = next((i for i, word in enumerate(words) if word.endswith(".py")), None)
    if found is None:
        return "torchrun starts Python: give a .py file, and start other programs from it"
    arguments = f" and args: {inline(words[found + 1 :])}" if words[found + 1 :] else ""
    return f"write script: {inline(words[found])}{arguments}; torchrun starts it"


def check_files(job: TrainingJob, directory: FilePath) -> Iterator[Problem]:
    """Yield problems of the code that lies beside the job file.

    Args:
        job: The job.
        directory: Where the job file lies.
    """
    entrypoint = job.spec.entrypoint
    if entrypoint is None or entrypoint.code is None or entrypoint.code.startswith(("/", "~")):
        return
    code, field = directory / entrypoint.code, f"{_E}.code"
    hint: str | None = "the path is taken from where the job file lies"
    try:
        if not code.is_dir():
            what = "is a file" if code.is_file() else "is no directory"
            yield error(field, f"is {show(entrypoint.code)}, but {code} {what}", hint)
        elif (
            entrypoint.script.endswith(".py")
            and not entrypoint.script.startswith("/")
            and not (code / entrypoint.script).is_file()
        ):
            scripts = sorted(path.name for path in code.glob("*.py"))[:5]
            hint = f"there is {', '.join(scripts)}" if scripts else None
            text = f"is {show(entrypoint.script)}, but {code / entrypoint.script} is no file"
            yield error(f"{_E}.script", text, hint, [field])
    except OSError as failure:
        yield error(field, f"cannot be read: {(failure.strerror or str(failure)).lower()}", None)
