"""Power-of-two scales worked out by hand: for a highest number of 6 (E2M1)."""

import numpy as np
import pytest

from orrery.numerics.codec.scales import _power_of_two


@pytest.mark.parametrize(
    ("amax", "floor", "ceil"),
    [
        (6.0, 1.0, 1.0),  # 6 / 6 is a power of two: it is its own ceiling
        (12.0, 2.0, 2.0),
        (3.0, 0.5, 0.5),
        (7.0, 1.0, 2.0),  # floor keeps 4 <= 7 < 8 as the binade of 6; ceil makes room for 7
        (8.0, 2.0, 2.0),  # 8 begins the next binade
        (4.0, 1.0, 1.0),  # 4 / 6 lies between 1/2 and 1
        (5.0, 1.0, 1.0),
        (0.0, 2.0**-127, 2.0**-127),  # the smallest scale there is
    ],
)
def test_the_exponent_of_a_group(amax, floor, ceil):
    for rule, scale in (("floor", floor), ("ceil", ceil)):
        assert _power_of_two(np.array([amax], dtype=np.float32), 6.0, rule).tolist() == [scale]
    assert amax / ceil <= 6.0


def test_what_is_not_finite_has_no_scale():
    for rule in ("floor", "ceil"):
        assert np.isnan(_power_of_two(np.array([np.nan], dtype=np.float32), 6.0, rule)).all()
