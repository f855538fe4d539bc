"""Values as YAML on one line: what is printed as an example or a hint can be pasted."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpk8s.spec.describe import inline
from ddpk8s.spec.document import parse_document

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=8)
PLAIN = st.text("-ab1.:#'\"[]{},&*!|>%@`? \\~e", max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 10**9) | TEXT | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | PLAIN, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(VALUES)
def test_value_is_read_back_equal(value: Any) -> None:
    document = parse_document(f"[{inline(value)}]", "x")
    assert document.problems == []
    assert document.data == [value]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"), ("--lr", "--lr"), ("-x", "-x"), ("1e-3", '"1e-3"'), ("no", '"no"'), ("", '""'), ("-", '"-"'),
        ("- a", '"- a"'), ("a: b", '"a: b"'), ("a:b", "a:b"), ("a #b", '"a #b"'), ("08", '"08"'), ("[x]", '"[x]"'),
        ("a:", '"a:"'), ("./src", "./src"), ("/data/a.b", "/data/a.b"), ("a.example/b:1", "a.example/b:1"),
        (0.001, "0.001"), (5e-5, "5e-05"), (1.0, "1"), ({"a": [1, True, None]}, "{a: [1, true, null]}"),
    ],
)  # fmt: skip
def test_quotes_stand_only_where_they_are_needed(value: object, text: str) -> None:
    assert inline(value) == text
