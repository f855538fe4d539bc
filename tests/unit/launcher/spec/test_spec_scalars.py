"""Plain scalars: YAML 1.2, and an error where readers of YAML disagree."""

import pytest

from ddpk8s.spec.scalars import resolve
from ddpk8s.spec.values import BadValueError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("true", True), ("False", False),
        ("8", 8), ("-3", -3), ("+3", 3), ("0", 0), ("-0", 0), ("0o17", 15), ("0x1F", 31),
        ("1e-3", 0.001), ("1.0e-3", 0.001), ("5e-5", 5e-5), (".5", 0.5), ("5.", 5.0),
        ("-1.5E+3", -1500.0), ("0.25", 0.25),
        ("1_000", "1_000"), ("1,000", "1,000"), ("12:30:00", "12:30:00"), ("2026-01-31", "2026-01-31"),
        ("nan", "nan"), ("inf", "inf"), ("yES", "yES"), ("nO", "nO"), ("none", "none"), ("0x", "0x"),
        ("1.2.3", "1.2.3"),
        ("64Gi", "64Gi"), ("10m", "10m"), ("e3", "e3"), ("-", "-"), (".", "."), ("٣", "٣"),
    ],
)  # fmt: skip
def test_plain_scalar_is_what_yaml_1_2_says(text: str, value: object) -> None:
    found = resolve(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["no", "No", "NO", "yes", "on", "ON", "off", "y", "N"])
def test_word_is_refused_when_some_readers_take_it_for_a_boolean(text: str) -> None:
    with pytest.raises(BadValueError, match="without quotes, which is text to some readers") as failure:
        resolve(text)
    assert f'write "{text}" in quotes' in str(failure.value.hint)


@pytest.mark.parametrize(
    ("text", "plain"), [("08", "8"), ("010", "10"), ("-07", "7"), ("00", "0"), ("01.5", "1.5")]
)
def test_number_is_refused_when_it_has_a_leading_zero(text: str, plain: str) -> None:
    with pytest.raises(BadValueError, match="leading zero") as failure:
        resolve(text)
    assert str(failure.value.hint).startswith(f"write {plain}, or")


@pytest.mark.parametrize("text", [".nan", ".NaN", ".inf", "-.Inf", "1e999", "-1e999", "9" * 31, "9" * 5000])
def test_number_is_refused_when_it_is_not_finite_or_much_too_long(text: str) -> None:
    with pytest.raises(BadValueError):
        resolve(text)
