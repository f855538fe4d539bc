"""Nothing that a user can write ends in a traceback, and all that is said is made for people."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpk8s.errors import SpecError, SpecErrors
from ddpk8s.spec.document import YamlSyntaxError, parse_document
from ddpk8s.spec.job import TrainingJob
from ddpk8s.spec.load import load_document

EXAMPLES = sorted((Path(__file__).parents[4] / "k8s" / "examples").glob("*.yaml"))
JARGON = (
    "Traceback",
    "pydantic",
    "http",
    "Input should",
    "Value error",
    "Extra inputs",
    "type=",
    "ruamel",
    "None",
    "Error",
)


def load(text: str, *sets: str) -> TrainingJob:
    try:
        return load_document(parse_document(text, "job.yaml"), sets)
    except YamlSyntaxError as failure:
        raise SpecErrors([failure.located]) from None


def said_well(text: str, *sets: str) -> bool:
    """Load a text; return whether it is valid. What is said about it must be made for people."""
    try:
        load(text, *sets)
    except SpecError as failure:
        printed = str(failure)
        assert printed
        for line in printed.splitlines():
            assert line.startswith(("job.yaml", "--set ", "  hint: ")), line
        written = text + "".join(sets)
        assert not [word for word in JARGON if word in printed and word not in written], printed
        return False
    return True


ODDITIES = st.sampled_from(
    [
        *(
            None,
            True,
            0,
            -1,
            1,
            1.5,
            1e300,
            10**25,
            "",
            "x",
            "no",
            "/a",
            "../a",
            "1Gi",
            "90s",
            "\n",
            "é",
            "a" * 300,
        ),
        *([], {}, [None], [[]], [{}], {"a": 1}, {"": None}, {"name": "x"}, {"a": "b\nc"}, [1, "a", None]),
        *("(?P<step>", "hf_" + "a" * 30),
    ]
)


def nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(below for key, entry in entries for below in nodes(entry, (*path, key)))]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from(EXAMPLES), st.randoms(use_true_random=False), st.lists(ODDITIES, min_size=1, max_size=4)
)
def test_no_value_anywhere_ends_in_a_traceback(
    example: Path, choice: random.Random, values: list[Any]
) -> None:
    document = load(example.read_text()).to_document() if choice.random() < 0.5 else parse(example)
    for value in values:
        path = choice.choice(nodes(document)[1:] or [("spec",)])
        container = document
        for part in path[:-1]:
            container = container[part]
        key: Any = path[-1]
        if isinstance(container, dict) and choice.random() < 0.2:
            key = choice.choice(["nnodes", "name", "lr", "gpus", "", "a.b", "x" * 99, "Spec", "trainig"])
        container[key] = copy.deepcopy(value)
    said_well(json.dumps(document))


def parse(example: Path) -> Any:
    return parse_document(example.read_text(), "job.yaml").data


SNIPPETS = [
    "\t",
    ":",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "!x ",
    "'",
    '"',
    "#",
    "|",
    ">",
    "%",
    "@",
    "`",
    "?",
    "\\",
]
SNIPPETS += [
    "---\n",
    "...\n",
    "no",
    "~",
    "<<: ",
    "é",
    "\u2028",
    "\ufeff",
    "\x85",
    " ",
    "\n",
    "  ",
    "0",
    "1e400",
    "==",
    ",",
    "\U0001f600",
]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.sampled_from(EXAMPLES), st.randoms(use_true_random=False))
def test_no_damage_to_the_text_ends_in_a_traceback(example: Path, choice: random.Random) -> None:
    text = example.read_text()
    for _ in range(choice.randint(1, 4)):
        place = choice.randrange(len(text))
        kind = choice.random()
        if kind < 0.5:
            text = text[:place] + choice.choice(SNIPPETS) + text[place:]
        elif kind < 0.8:
            text = text[:place] + text[place + choice.randint(1, 12) :]
        else:
            lines = text.splitlines(keepends=True)
            i, k = choice.randrange(len(lines)), choice.randrange(len(lines))
            lines[i], lines[k] = lines[k], lines[i]
            text = "".join(lines)
    said_well(text)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.text("spectoglgy.[]0=\"'\\:{} n1-x", max_size=30),
    st.sampled_from(["4", "", "[", "{a: 1}", "no", "*x", "a\nb"]),
)
def test_no_override_ends_in_a_traceback(name: str, value: str) -> None:
    said_well(EXAMPLES[0].read_text(), f"spec.{name}={value}", f"{name}={value}", name)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_is_valid(example: Path) -> None:
    assert said_well(example.read_text())
