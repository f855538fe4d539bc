"""From the profiles' files to `Profile`: one file is read when it is asked for, and no other."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ddpk8s.errors import SpecError, SpecErrors
from ddpk8s.fabric.judge import judge_profile
from ddpk8s.fabric.model import Profile
from ddpk8s.spec.document import Document, YamlSyntaxError, parse_document
from ddpk8s.spec.fabric import PROFILES
from ddpk8s.spec.translate import translate

DIRECTORY = Path(__file__).parent / "profiles"
MAX_BYTES = 256 * 1024


class _Profiles(Mapping[str, Profile]):
    """Profiles by name; those of the launcher are read on first use."""

    def __init__(self, extra: Profile | None) -> None:
        self._read = {} if extra is None else {extra.name: extra}
        self._names = tuple(dict.fromkeys((*self._read, *PROFILES)))

    def __getitem__(self, name: str) -> Profile:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = _parse(DIRECTORY / f"{name}.yaml")
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load_profiles(extra: Path | None = None) -> Mapping[str, Profile]:
    """Return all profiles by name; the launcher's own are read only when they are asked for.

    Args:
        extra: A file with a profile of the user.

    Raises:
        SpecErrors: mistakes in that file, all at once, each with file, line and column.
        SpecError: that file cannot be read.
    """
    return _Profiles(None if extra is None else load_profile(extra))


def load_profile(path: Path) -> Profile:
    """Return the profile in a file of the user.

    Raises:
        SpecErrors: mistakes in the file.
        SpecError: it cannot be read, or its profile is called like one of the launcher's.
    """
    profile = _parse(path)
    if profile.name in PROFILES:
        hint = f"call it for example my-{profile.name}"
        raise SpecError(f"{path}: name is '{profile.name}', which is a profile of the launcher", hint)
    return profile


def _parse(path: Path) -> Profile:
    try:
        document = parse_document(_text(path), str(path))
    except YamlSyntaxError as failure:
        raise SpecErrors([failure.located]) from None
    if not isinstance(document.data, dict):
        raise SpecError(f"{path}: must be a mapping with apiVersion, kind: FabricProfile and name")
    profile = _validate(document)
    problems = [*document.problems, *(judge_profile(profile) if profile is not None else ())]
    if profile is None or problems:
        raise SpecErrors([document.locate(problem) for problem in problems])
    return profile


def _validate(document: Document) -> Profile | None:
    """Return the profile; None if fields are wrong, which are then among the document's problems."""
    try:
        return Profile.model_validate(_without_nulls(document.data), by_alias=True, by_name=False)
    except ValidationError as failure:
        for entry in failure.errors(include_url=False):
            present = tuple(entry["loc"]) in document.places
            document.problems.append(translate(entry, Profile, document.raw, present))
    return None


def _without_nulls(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data without empty sections (`env:` with nothing after it), as in Kubernetes."""
    return {key: value for key, value in data.items() if value is not None}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        hint = "spec.fabric.profileFile is taken from where the job file lies"
        raise SpecError(f"{path}: there is no such file", hint) from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: is not UTF-8", "save it as UTF-8") from None
    except OSError as failure:
        raise SpecError(f"{path}: cannot be read: {(failure.strerror or str(failure)).lower()}") from None
    if len(content) > MAX_BYTES:
        raise SpecError(f"{path}: is larger than {MAX_BYTES // 1024} KiB, which no profile needs")
    return text.replace("\r\n", "\n")
