"""The cheapest schedule in hindsight against every schedule of small cases."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.fleet.service.hindsight import cheapest, demand_of


def tried(demand, lead):
    """The least replica-periods of one level by trying every set of periods in which the replica is paid for.

    A needed period must be served: paid for, and every one of the ``lead`` periods before it since the last start too.
    """
    best = None
    for paid in product((0, 1), repeat=len(demand)):
        ready = []
        for k, on in enumerate(paid):
            first = k
            while first > 0 and paid[first - 1]:
                first -= 1
            ready.append(bool(on) and (k - first >= lead or first == 0))
        if all(r for r, d in zip(ready, demand, strict=True) if d):
            best = sum(paid) if best is None else min(best, sum(paid))
    return best


@settings(max_examples=60, deadline=None)
@given(demand=st.lists(st.integers(0, 1), min_size=1, max_size=9), lead=st.integers(0, 3))
def test_one_level_is_the_best_of_all_schedules(demand, lead):
    found = cheapest(np.array(demand), 10.0, 10.0 * lead)
    assert found.total_s == pytest.approx(10.0 * tried(demand, lead))


def test_levels_by_hand():
    """Demand 1 2 2 0 0 0 1 of 60 s, cold start 90 s: the first replica is given back for the gap of 180 s."""
    found = cheapest(np.array([1, 2, 2, 0, 0, 0, 1]), 60.0, 90.0)
    assert found.paid_s.tolist() == [3 * 60 + 60 + 90, 2 * 60 + 60]
    assert found.starts == 3
    assert cheapest(np.array([1, 2, 2, 0, 0, 0, 1]), 60.0, 200.0).paid_s.tolist() == [7 * 60, 2 * 60 + 60]


def test_demand_is_arrivals_over_capacity():
    assert demand_of(np.array([0.0, 1.0, 2.0, 11.0]), 0.1, 10.0, 30.0, 9).tolist() == [3, 1, 0]
    assert demand_of(np.array([0.0, 1.0, 2.0, 11.0]), 0.1, 10.0, 30.0, 2).tolist() == [2, 1, 0]
