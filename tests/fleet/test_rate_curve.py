"""Rates over a week: the mean, the hours, and arrivals that follow them."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.service.rate_curve import DAY_S, RateCurve, bent, steady_length_s


def test_a_diurnal_day_has_its_ratio_its_peak_and_mean_one():
    day = RateCurve(peak_to_trough_ratio=4.0, peak_s=14 * 3600.0).weekly()
    assert day.size == 7 * 24 * 60
    assert day.mean() == pytest.approx(1.0)
    assert day.max() / day.min() == pytest.approx(4.0, rel=1e-4)
    assert np.argmax(day[:1440]) in (14 * 60 - 1, 14 * 60)


def test_hours_and_weekends_by_hand():
    """Two busy hours of 24; on two days half of it: the mean is 2 x (5 + 2 x 0.5) / (7 x 24) = 1/14."""
    week = RateCurve(hourly_ratio=(1.0, 1.0) + (0.0,) * 22, weekend_frac=0.5).weekly()
    assert week[0] == pytest.approx(14.0)
    assert week[120] == 0.0
    assert week[5 * 1440] == pytest.approx(7.0)


def test_arrivals_follow_the_curve():
    curve = RateCurve(hourly_ratio=tuple(float(h % 2) for h in range(24))).along(DAY_S, 0)
    at_s = bent(np.arange(0.0, steady_length_s(curve), 1.0), curve)
    hour = (at_s / 3600.0).astype(int)
    counts = np.bincount(hour, minlength=24)[:24]
    assert counts[1::2] == pytest.approx(np.full(12, 7200), abs=2)
    assert counts[2::2].max() <= 1
    assert (np.diff(at_s) >= 0).all()


def test_a_flat_curve_changes_nothing():
    steady = np.linspace(0.0, 7000.0, 100)
    assert bent(steady, RateCurve().along(7200.0, 0)) == pytest.approx(steady)


def test_the_start_is_an_hour_of_the_week():
    week = RateCurve(peak_to_trough_ratio=4.0)
    later = RateCurve(peak_to_trough_ratio=4.0, start_s=5 * 3600.0)
    assert np.array_equal(week.along(DAY_S, 0)[300:600], later.along(DAY_S, 0)[:300])


def test_bursts_multiply_some_minutes():
    curve = RateCurve(bursts_per_day=6.0, burst_ratio=3.0, burst_length_s=600.0).along(30 * DAY_S, 1)
    assert set(np.round(np.unique(curve), 6)) >= {1.0, 3.0}
    assert (curve >= 2.9).mean() == pytest.approx(6 * 600 / DAY_S, rel=0.15)


@pytest.mark.parametrize(
    "wrong", [{"hourly_ratio": (1.0,) * 23}, {"hourly_ratio": (-1.0,) * 24}, {"peak_to_trough_ratio": 0.5}]
)
def test_what_is_no_curve_is_refused(wrong):
    with pytest.raises(ScenarioError):
        RateCurve(**wrong)
