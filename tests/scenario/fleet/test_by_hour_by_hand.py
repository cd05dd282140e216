"""Hours of two clocks, means over them, and joules up to a moment, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.fleet.hours.shift import Hours
from orrery.fleet.service.result import FRAME
from orrery.scenario.fleet.by_hour import ByHour, Clock, drawn_until_j, steady_by_hour, together

HOUR_S = 3600.0


def day(usd=None, carbon=None):
    """A table of a day that is 0 but for some rows."""
    rows = [np.zeros(24), np.zeros(24)]
    for row, of in zip(rows, (usd or {}, carbon or {}), strict=True):
        for hour, value in of.items():
            row[hour] = value
    return Hours(length_s=HOUR_S, base_w=np.zeros(24), usd_per_j=rows[0], carbon_g=rows[1])


@pytest.mark.parametrize(
    ("start_hour", "offset_s", "length_s", "edges_s", "rows"),
    [
        (0.0, 0.0, 7200.0, [0, 3600, 7200], [0, 1]),
        (23.5, 0.0, 5400.0, [0, 1800, 5400], [23, 0]),
        # half an hour ahead of UTC: its hours begin where those of UTC are half over
        (23.5, 1800.0, 5400.0, [0, 1800, 3600, 5400], [0, 0, 1]),
        (22.0, 3600.0, 3600.0, [0, 3600], [23]),  # whole hours ahead: the same edges, another row
        (2.0, -7200.0, 4000.0, [0, 3600, 4000], [0, 1]),
        (5.25, 0.0, 60.0, [0, 60], [5]),  # within one hour
    ],
)
def test_edges_of_the_hours_of_both_clocks(start_hour, offset_s, length_s, edges_s, rows):
    found, of = Clock(start_s=start_hour * HOUR_S, offset_s=offset_s).edges(day(), length_s)
    assert found.tolist() == edges_s
    assert of.tolist() == rows


def test_hours_that_a_table_cuts_are_put_together():
    """From 23:30 of UTC for 90 minutes at 10 W, which a meter sees as 20 W; the table's clock is half an hour ahead.

    Its hour 0 has $2 and 4 g a joule, its hour 1 $6 and 8 g: the hour of UTC from 0:00 has half of both.
    """
    clock = Clock(start_s=23.5 * HOUR_S, offset_s=1800.0)
    lengths_s, power_w = np.array([2700.0, 2700.0]), np.array([10.0, 10.0])
    found = steady_by_hour(day({0: 2, 1: 6}, {0: 4, 1: 8}), 2.0, clock, lengths_s, power_w, is_paid=True)
    assert found.start_s.tolist() == [0, 1800]
    assert found.length_s.tolist() == [1800, 3600]
    assert found.energy_j == pytest.approx([20 * 1800, 20 * 3600])
    assert found.usd == pytest.approx([20 * 1800 * 2, 20 * 1800 * (2 + 6)])
    assert found.carbon_g == pytest.approx([20 * 1800 * 4, 20 * 1800 * (4 + 8)])
    assert found.usd_per_j == pytest.approx([2, 4])
    assert found.joule_carbon_g == pytest.approx([4, 6])
    assert found.whole_hours.tolist() == [False, True]
    rented = steady_by_hour(day({0: 2, 1: 6}), 2.0, clock, lengths_s, power_w, is_paid=False)
    assert rented.usd.tolist() == [0, 0]
    assert rented.energy_j == pytest.approx(found.energy_j)


def test_means_weigh_parts_by_their_length():
    """A quarter of an hour at $1 and three quarters at $5: the table is 45 minutes behind UTC."""
    clock = Clock(start_s=0.0, offset_s=-2700.0)
    found = steady_by_hour(day({23: 5, 0: 1}), 1.0, clock, np.array([HOUR_S]), np.array([1.0]), is_paid=True)
    assert found.usd_per_j == pytest.approx([0.75 * 5 + 0.25 * 1])
    assert found.usd == pytest.approx([2700 * 5 + 900 * 1])


def test_power_that_changes_within_an_hour():
    """1 W for half an hour, then 3 W for an hour."""
    lengths_s, power_w = np.array([1800.0, 3600.0]), np.array([1.0, 3.0])
    found = steady_by_hour(day(), 1.0, Clock(start_s=0.0), lengths_s, power_w, is_paid=True)
    assert found.energy_j == pytest.approx([1800 + 3 * 1800, 3 * 1800])


def of_region(energy_j, usd, carbon_g, usd_per_j, joule_carbon_g):
    values = (np.array(v, dtype=float) for v in (energy_j, usd, carbon_g, usd_per_j, joule_carbon_g))
    energy, cost, carbon, price, clean = values
    at_s, length_s = np.array([0.0, HOUR_S]), np.array([HOUR_S, HOUR_S])
    return ByHour(
        start_s=at_s,
        energy_j=energy,
        usd=cost,
        carbon_g=carbon,
        length_s=length_s,
        usd_per_j=price,
        joule_carbon_g=clean,
    )


def test_regions_together():
    """3 of 4 joules at $1 and one at $5 are $2 a joule; where nothing is drawn both count alike."""
    one = of_region([3, 0], [3, 1], [30, 2], [1, 2], [10, 20])
    two = of_region([1, 0], [5, 0], [90, 0], [5, 4], [90, 40])
    found = together([one, two])
    assert found.energy_j.tolist() == [4, 0]
    assert found.usd.tolist() == [8, 1]
    assert found.carbon_g.tolist() == [120, 2]
    assert found.usd_per_j == pytest.approx([0.75 * 1 + 0.25 * 5, 3])
    assert found.joule_carbon_g == pytest.approx([0.75 * 10 + 0.25 * 90, 30])
    assert together([]) is None


def pool(purchase, replicas_max=1):
    return SimpleNamespace(purchase=purchase, idle_power_w=8.0, host_power_w=2.0, replicas_max=replicas_max)


def test_joules_up_to_moments_of_a_run():
    """Two owned replicas are idle at 20 W throughout; a rented one runs from 10 s, another from 30 s past the end.

    Steps of the owned pool have added 4 J by 20 s and 12 J by 40 s; 2 J more come in the last sample.
    """
    frames = np.zeros((2, len(FRAME)))
    frames[:, FRAME.index("now_s")] = 20.0, 40.0
    spans = [
        SimpleNamespace(pool=1, start_s=10.0, end_s=25.0),
        SimpleNamespace(pool=1, start_s=30.0, end_s=99.0),
        SimpleNamespace(pool=1, start_s=50.0, end_s=99.0),
        SimpleNamespace(pool=0, start_s=0.0, end_s=99.0),  # owned: counted above
    ]
    run = SimpleNamespace(
        setup=SimpleNamespace(terms=[pool("owned", 2), pool("on-demand")]),
        spans=spans,
        end_s=50.0,
        frames=frames,
        spent_j=np.array([[4.0, 100.0], [12.0, 100.0], [14.0, 101.0]]),
    )
    at_s = np.array([15.0, 20.0, 30.0, 50.0])
    owned = 20.0 * at_s + [4, 4, 8, 14]
    assert drawn_until_j(run, at_s, (0,)) == pytest.approx(owned)
    rented = 10.0 * np.array([5.0, 10.0, 15.0, 35.0]) + [100, 100, 100, 101]
    assert drawn_until_j(run, at_s, (1,)) == pytest.approx(rented)
    assert drawn_until_j(run, at_s) == pytest.approx(owned + rented)
