"""Durations and quantities."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpk8s.spec.values import (
    BadValueError,
    format_bytes,
    format_duration,
    parse_duration,
    parse_quantity,
    show,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5400), ("500ms", 0.5), ("1.5h", 5400), ("0s", 0), ("2m2s", 122), ("30m1h", 5400)],
)
def test_duration_is_read_as_go_does(text: str, seconds: float) -> None:
    assert parse_duration(text).total_seconds() == seconds


@pytest.mark.parametrize(
    "text", ["", "90", "s", "1d", "1 h", "-5s", "1h 30m", "1H", "٣s", "1e3s", "9" * 70 + "s", "100000h"]
)
def test_duration_is_refused_when_it_is_not_gos(text: str) -> None:
    with pytest.raises(BadValueError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("given_value", "hint"), [(90, "write 90s"), (1.5, "write 1.5s"), ("2d", "write 48h")]
)
def test_duration_hint_says_what_to_write(given_value: object, hint: str) -> None:
    with pytest.raises(BadValueError) as failure:
        parse_duration(given_value)
    assert str(failure.value.hint).startswith(hint)


@given(st.integers(0, 10**10))
def test_duration_survives_formatting(milliseconds: int) -> None:
    value = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(value)) == value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("500m", "0.5"),
        ("4", "4"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("64Gi", 64 * 2**30),
        ("1k", 1000),
        ("2E", 2 * 10**18),
    ],
)
def test_quantity_is_read_as_kubernetes_does(text: str, number: str | int) -> None:
    assert parse_quantity(text) == Decimal(number)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("64GB", "write 64Gi"), ("64 Gi", "write 64Gi"), ("64gib", "write 64Gi"), ("1.5g", "write 1.5Gi"),
        ("lots", None), ("-1", None), ("", None), ("1Gi2", None),
    ],
)  # fmt: skip
def test_quantity_is_refused_with_what_was_meant(text: str, hint: str | None) -> None:
    with pytest.raises(BadValueError) as failure:
        parse_quantity(text)
    assert failure.value.hint == hint


@pytest.mark.parametrize(
    ("count", "text"), [(900, "900"), (2**30, "1Gi"), (3 * 2**29, "1.5Gi"), (8 * 2**30, "8Gi")]
)
def test_bytes_are_shown_in_powers_of_1024(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"), (True, "true"), (None, "null"), (1.5, "1.5"), ({}, "a mapping"), ([1], "a list"),
        ("x" * 99, f"'{'x' * 57}...'"),
    ],
)  # fmt: skip
def test_value_is_shown_as_in_yaml_and_cut_short(value: object, text: str) -> None:
    assert show(value) == text
