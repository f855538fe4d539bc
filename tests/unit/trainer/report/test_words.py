import math

import pytest

from ddpk8s_trainer.report.words import compact, duration, moment, number, percent, size, ticks


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (192, "3 min 12 s"), (3599.7, "1 h 00 min"),
     (7500, "2 h 05 min"), (86_400 * 3 + 7200, "3 d 02 h"), (None, "–"), (math.nan, "–")],
)  # fmt: skip
def test_a_duration_is_read_at_a_glance_when_written(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.23310, "0.2331"), (12345.0, "12,345"), (12345.6, "12,346"), (5e-5, "5e-5"), (1e-8, "1e-8"), (3, "3"),
     (None, "–"), (math.nan, "NaN"), (math.inf, "∞"), (-math.inf, "-∞")],
)  # fmt: skip
def test_a_number_keeps_what_matters_when_written(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.88, 0.9, 0.92], ["0.88", "0.90", "0.92"]),
        ([0, 2.5e-5, 5e-5], ["0", "2.5e-5", "5.0e-5"]),
        ([0, 500, 1000, 1500], ["0", "500", "1,000", "1,500"]),
        ([0, 5000, 10000], ["0", "5k", "10k"]),
        ([0, 500_000, 1_000_000], ["0", "0.5M", "1.0M"]),
        ([0.0], ["0"]),
        ([], []),
    ],
)
def test_ticks_look_alike_when_on_one_axis(values, texts):
    assert ticks(values) == texts


def test_counts_and_shares_and_sizes_are_short_when_written():
    assert [compact(v) for v in (850, 9999, 76_800, 1_040_000)] == ["850", "9,999", "76.8k", "1.04M"]
    assert (percent(0.8734), percent(None), percent(math.nan)) == ("87.3 %", "–", "–")
    assert [size(v) for v in (5, 2048, 1536 * 2**20, 2**50, None)] == [
        "5 B",
        "2.0 KiB",
        "1.5 GiB",
        "1024.0 TiB",
        "–",
    ]
    assert (moment(0), moment(1_790_000_000)) == ("–", "2026-09-21 14:13:20")
