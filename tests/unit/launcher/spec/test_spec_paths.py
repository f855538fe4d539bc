"""Paths: text to tuple and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpk8s.spec.paths import format_path, parse_path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("spec.topology.nnodes", ("spec", "topology", "nnodes")),
        ("spec.storage[0].name", ("spec", "storage", 0, "name")),
        ("spec.storage.0.name", ("spec", "storage", 0, "name")),
        ('metadata.labels["example.com/team"]', ("metadata", "labels", "example.com/team")),
        (r"metadata.labels.example\.com/team", ("metadata", "labels", "example.com/team")),
        ("a['b.c'][1][2]", ("a", "b.c", 1, 2)),
    ],
)
def test_path_is_read_in_every_way_of_writing_it(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "a[",
        "a[]",
        "a[x]",
        "a]b",
        "a[-1]",
        'a["b]',
        "a[1234567]",
        r'["\ud800"]',
        "a\udcff",
    ],
)
def test_path_is_refused_when_it_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no path; write for example spec\.topology\.nnodes"):
        parse_path(text)


_KEYS = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda key: not key.isdigit())


@given(st.tuples(_KEYS.filter(str.isidentifier), st.lists(_KEYS | st.integers(0, 999))))
def test_path_survives_formatting(parts: tuple[str, list[str | int]]) -> None:
    path = (parts[0], *parts[1])
    assert parse_path(format_path(path)) == path


def test_key_is_shown_on_one_line_whatever_it_holds() -> None:
    assert format_path(("a", "b\u2028c\n")) == r'a["b\u2028c\n"]'
    assert format_path(("a", "\u00e9")) == 'a["\u00e9"]'
