import numpy as np
import pytest

from ddpk8s_trainer.report.series import shares, smooth, thin


def wave(count):
    x = np.arange(count, dtype=float)
    return x, np.sin(x / 50)


def test_short_series_stay_as_they_are_when_thinned():
    x, y = wave(300)
    assert np.array_equal(thin(x, y), (x, y))


def test_spikes_survive_when_a_long_series_is_thinned():
    x, y = wave(100_000)
    y[12_345], y[67_890] = 99.0, -99.0
    thin_x, thin_y = thin(x, y)
    assert len(thin_x) <= 500
    assert np.all(np.diff(thin_x) > 0)
    assert (12_345.0, 99.0) in zip(thin_x, thin_y, strict=True)
    assert (67_890.0, -99.0) in zip(thin_x, thin_y, strict=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gap_survives_when_a_long_series_is_thinned(value):
    x, y = wave(100_000)
    y[500] = value
    y[40_000:60_000] = value
    thin_x, thin_y = thin(x, y)
    assert len(thin_x) <= 500
    assert np.isnan(thin_y[thin_x == 500.0]).all()
    assert np.isnan(thin_y[(thin_x >= 40_000) & (thin_x < 60_000)]).all()
    assert np.isfinite(thin_y[thin_x >= 60_000]).all()


def test_the_trend_follows_the_mean_when_the_series_is_noisy():
    noise = np.random.default_rng(1).normal(0, 1, 20_000)
    x = np.arange(20_000, dtype=float)
    trend_x, trend = smooth(x, 5 + noise)
    assert len(trend_x) == 250
    assert np.abs(trend - 5).max() < 0.3
    assert trend[0] == pytest.approx(5 + noise[:80].mean())


def test_the_trend_has_a_gap_when_the_series_has():
    x, y = wave(100)
    y[40:60] = np.nan
    trend_x, trend = smooth(x, y)
    assert np.isnan(trend).sum() == 1
    before, after = trend_x[np.isnan(trend).argmax() - 1], trend_x[np.isnan(trend).argmax() + 1]
    assert (before, after) == (39, 60)


@pytest.mark.parametrize("values", [[], [1.0] * 7, [np.nan] * 50])
def test_there_is_no_trend_when_there_is_next_to_nothing(values):
    y = np.array(values, dtype=float)
    assert len(smooth(np.arange(len(y), dtype=float), y)[0]) == 0


def test_shares_add_up_to_one_when_there_is_time():
    parts = np.random.default_rng(1).uniform(0, 1, (3, 10_000))
    x, found = shares(np.arange(10_000, dtype=float), parts)
    assert found.shape == (3, 120)
    assert x[-1] == 9_999
    assert np.allclose(found.sum(axis=0), 1)
    assert found[:, 0] == pytest.approx(parts[:, :83].sum(axis=1) / parts[:, :83].sum())


def test_shares_are_zero_when_no_time_was_measured():
    assert not shares(np.arange(3.0), np.zeros((2, 3)))[1].any()
