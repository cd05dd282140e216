"""The Pareto front is what nothing else beats on both counts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from orrery.planner.pareto import front, reached

POINTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=40)


@given(POINTS)
def test_the_front_is_the_brute_force_one(points: list[tuple[int, int]]) -> None:
    x, y = (np.array(c, dtype=float) for c in zip(*points, strict=True))
    found = front(x, y)
    beaten = {
        i
        for i, a in enumerate(points)
        for j, b in enumerate(points)
        if (b != a and b[0] >= a[0] and b[1] >= a[1]) or (b == a and j < i)
    }
    assert set(found.tolist()) == set(range(len(points))) - beaten


@given(POINTS)
def test_along_the_front_one_falls_as_the_other_rises(points: list[tuple[int, int]]) -> None:
    x, y = (np.array(c, dtype=float) for c in zip(*points, strict=True))
    found = front(x, y)
    assert (np.diff(x[found]) < 0).all()
    assert (np.diff(y[found]) > 0).all()


@given(POINTS, POINTS)
def test_what_is_reached_is_what_one_comparison_after_another_says(points, others) -> None:
    values, by = np.array(points, dtype=float), np.array(others, dtype=float)
    want = [any(o[0] <= p[0] and o[1] <= p[1] for o in others) for p in points]
    assert reached(values, by).tolist() == want
    assert not reached(values, by[:0]).any()
