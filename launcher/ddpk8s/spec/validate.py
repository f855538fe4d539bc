"""Judge a document: fields by the model, then the arithmetic between them, as far as the fields are right."""

import copy
import re
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from ddpk8s.spec.base import Section
from ddpk8s.spec.checks import check_files, check_job
from ddpk8s.spec.document import Document
from ddpk8s.spec.job import API_VERSION, KIND, TrainingJob
from ddpk8s.spec.paths import Path
from ddpk8s.spec.problems import LocatedProblem, Problem, error
from ddpk8s.spec.shape import Shape, SpecField, fields_of, find
from ddpk8s.spec.translate import translate
from ddpk8s.spec.values import show

_ROUNDS = 3
_PLACE = re.compile(r":(\d+)(?::(\d+))?$")


def validate_document(
    document: Document, directory: FilePath | None = None
) -> tuple[TrainingJob | None, list[LocatedProblem]]:
    """Return the job, if there is no error, and all errors and warnings in the order of the file.

    Args:
        document: What a file holds.
        directory: Where the job file lies; code is looked for there. None looks for no files.
    """
    if stranger := _stranger(document.data):
        return None, [document.locate(stranger)]
    data = _without_nulls(document.data, TrainingJob)
    problems, job = list(document.problems), None
    failures: list[Any] = []
    try:
        job = _read(data)
    except ValidationError as failure:
        failures = failure.errors(include_url=False)
        job = _read_what_is_right(data, failures)
    failed = _Failed(problems)
    for entry in failures:
        present = tuple(entry["loc"]) in document.places
        problem = translate(entry, TrainingJob, document.raw, present)
        if not failed.covers(problem.path):
            problems.append(problem)
    failed = _Failed(problems)
    if job is not None:
        found = [*check_job(job), *(check_files(job, directory) if directory is not None else ())]
        problems += [problem for problem in found if not failed.touches(problem)]
    located = sorted(map(document.locate, problems), key=_order)
    if any(not problem.warning for problem in problems):
        return None, [entry for entry in located if not entry.problem.warning]
    return job, located


def _stranger(data: Any) -> Problem | None:
    """Return the one problem worth telling about a document that is no TrainingJob at all."""
    if not isinstance(data, dict):
        return error((), f"is {show(data)}, but must be a mapping with apiVersion, kind, metadata and spec")
    kind, version = data.get("kind"), data.get("apiVersion")
    if isinstance(kind, str) and isinstance(version, str) and kind != KIND and version != API_VERSION:
        hint = f"a job file begins with apiVersion: {API_VERSION} and kind: {KIND}; `ddpk8s init` writes one"
        return error(
            ("kind",), f"is {show(kind)} of {show(version)}, but must be {KIND} of {API_VERSION}", hint
        )
    return None


def _read(data: Any) -> TrainingJob:
    """Return the job; only camelCase keys are known in a file."""
    return TrainingJob.model_validate(data, by_alias=True, by_name=False)


def _without_nulls(data: Any, section: type[Section]) -> Any:
    """Return the data without nulls that say nothing: as in Kubernetes, an empty `env:` is an absent one."""
    if not isinstance(data, dict):
        return data
    result = {}
    for key, value in data.items():
        field = fields_of(section).get(key)
        if field is None:
            result[key] = value
        elif value is not None or field.shape.nullable:
            result[key] = _inside(value, field.shape)
    return result


def _inside(value: Any, shape: Shape) -> Any:
    if shape.section is not None:
        return _without_nulls(value, shape.section)
    if shape.kind == "list" and shape.item is not None and isinstance(value, list):
        item = shape.item
        return [_inside(entry, item) for entry in value]
    return value


def _read_what_is_right(data: Any, failures: list[Any]) -> TrainingJob | None:
    """Return the job with examples or defaults in place of what is wrong, so that the rest can be checked."""
    data = copy.deepcopy(data)
    for _ in range(_ROUNDS):
        for failure in failures:
            _replace(data, failure)
        try:
            return _read(data)
        except ValidationError as failure:
            failures = failure.errors(include_url=False)
    return None


def _replace(data: Any, failure: Mapping[str, Any]) -> None:
    path = tuple(part for part in failure["loc"] if part != "[key]")
    container = data
    for part in path[:-1]:
        try:
            container = container[part]
        except (KeyError, IndexError, TypeError):
            return
    found = find(TrainingJob, path)
    if isinstance(container, list):
        container[path[-1]] = _example(found) if isinstance(found, Shape) else None
    elif isinstance(container, dict):
        if isinstance(found, SpecField) and found.info.is_required():
            container[path[-1]] = _example_of(found)
        else:
            container.pop(path[-1], None)


def _example_of(field: SpecField) -> Any:
    return field.info.examples[0] if field.info.examples else _example(field.shape)


def _example(shape: Shape) -> Any:
    """Return something of that shape that is valid."""
    if shape.section is None:
        return {"list": [], "map": {}}.get(shape.kind, shape.choices[0] if shape.choices else "example")
    required = {key: field for key, field in fields_of(shape.section).items() if field.info.is_required()}
    return {key: _example_of(field) for key, field in required.items()}


class _Failed:
    """Fields that are wrong by themselves: what follows from them is not worth telling."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.paths = {path for problem in problems for path in (problem.path, *problem.related)}

    def covers(self, path: Path) -> bool:
        """Return whether the field, or a section around it, is wrong."""
        return any(path[:length] in self.paths for length in range(1, len(path) + 1))

    def touches(self, problem: Problem) -> bool:
        """Return whether the problem speaks of a field that is wrong, or of a section with a wrong field."""
        if self.covers(problem.path):
            return True
        return any(
            self.covers(path) or any(failed[: len(path)] == path for failed in self.paths)
            for path in problem.related
        )


def _order(located: LocatedProblem) -> tuple[int, int, int]:
    match = None if located.place.startswith("--set") else _PLACE.search(located.place)
    return (0, int(match[1]), int(match[2] or 0)) if match else (int(located.place.startswith("--set")), 0, 0)
