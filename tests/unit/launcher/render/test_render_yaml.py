"""The writer of YAML: what it writes is read back equal, and stays readable."""

import io
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tests.unit.launcher.render.strategies import NASTY, texts

from ddpk8s.render.yaml_text import to_yaml

TREES = st.recursive(
    texts | st.booleans() | st.integers(-(2**53), 2**53) | st.none(),
    lambda inner: st.dictionaries(texts.filter(bool), inner, max_size=4) | st.lists(inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(texts.filter(bool), TREES, max_size=4))
def test_values_are_read_back_equal(value: dict[str, Any]) -> None:
    text = to_yaml([{"kind": "X", **value}])
    expected = {"kind": "X", **value}
    assert yaml.safe_load(text) == expected
    assert YAML(typ="safe", pure=True).load(io.StringIO(text)) == expected


@pytest.mark.parametrize("text", NASTY)
def test_texts_that_look_like_something_else_stay_text(text: str) -> None:
    written = to_yaml([{"a": text, "b": [text], text or "c": "d"}])
    assert yaml.safe_load(written) == {"a": text, "b": [text], text or "c": "d"}


def test_texts_of_several_lines_stand_as_blocks() -> None:
    assert to_yaml([{"a": {"b": "one\n  two\n"}, "c": ["x\ny"]}]) == (
        "---\na:\n  b: |\n    one\n      two\nc:\n- |-\n  x\n  y\n"
    )


def test_plain_words_stand_without_quotes() -> None:
    written = to_yaml(
        [{"image": "registry.example/x:0.1.0", "number": 3, "yes": "no", "e": {}, "l": [], "v": "1e-3"}]
    )
    assert (
        written == '---\nimage: registry.example/x:0.1.0\nnumber: 3\n"yes": "no"\ne: {}\nl: []\nv: "1e-3"\n'
    )
