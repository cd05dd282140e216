"""One steady hour of several regions: sums, and means by requests and by replicas, worked out by hand."""

from dataclasses import fields
from types import SimpleNamespace

import pytest

from orrery.fleet.service.steady import Hour
from orrery.scenario.fleet import steady_regions as page


def hour(rate, ttft_s, tpot_s, replicas=2.0, capped=None):
    return Hour(
        start_s=3600.0,
        rate_requests_per_s=rate,
        num_replicas=replicas,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        power_w=10.0 * replicas,
        host_power_w=replicas,
        usd_per_s=0.5 * replicas,
        used_frac=rate / 10.0,
        capped=capped,
    )


def test_regions_of_an_hour_together():
    """3 requests a second at 1 s and one at 5 s, which are 4 s on their way together: (3 + 5 + 4) / 4."""
    found = page._together([hour(3.0, 1.0, 0.1), hour(1.0, 5.0, 0.3, replicas=4.0)], 4.0)
    assert (found.start_s, found.rate_requests_per_s, found.num_replicas) == (3600.0, 4.0, 6.0)
    assert found.ttft_s == pytest.approx(3.0)
    assert found.tpot_s == pytest.approx((3 * 0.1 + 0.3) / 4)
    assert (found.power_w, found.host_power_w, found.usd_per_s, found.used_frac) == (60.0, 6.0, 3.0, 0.3)
    assert found.capped is None


def test_a_region_without_requests_has_no_latency():
    found = page._together([hour(2.0, 1.0, 0.1), hour(0.0, float("inf"), 0.3)], 0.0)
    assert (found.ttft_s, found.tpot_s) == (1.0, pytest.approx(0.1))
    nothing = page._together([hour(0.0, 7.0, 0.1)], 0.0)
    assert (nothing.ttft_s, nothing.tpot_s) == (0.0, 0.0)


def limited(clock_frac, drawn_w, throttled_frac, value):
    state = SimpleNamespace(**{f.name: value for f in fields(page.ReplicaState)})
    return SimpleNamespace(clock_frac=clock_frac, drawn_w=drawn_w, throttled_frac=throttled_frac, replica=state)


def test_limits_of_regions_together():
    """One replica at 0.7 of its clock and three at 0.9: 0.85; draws add up, and the most throttled counts."""
    first = hour(1.0, 1.0, 0.1, 1.0, limited(0.7, (100.0, 40.0), (0.5, 0.0), 2.0))
    second = hour(1.0, 1.0, 0.1, 3.0, limited(0.9, (50.0, 0.0), (0.1, 0.2), 6.0))
    found = page._capped([first, second, hour(1.0, 1.0, 0.1)])
    assert found.clock_frac == pytest.approx(0.85)
    assert (found.drawn_w, found.throttled_frac) == ((150.0, 40.0), (0.5, 0.2))
    assert {getattr(found.replica, f.name) for f in fields(page.ReplicaState)} == {5.0}
    none = page._capped([hour(1.0, 1.0, 0.1, 0.0, limited(0.7, (1.0,), (0.0,), 2.0))])
    assert none.clock_frac == 0.0
