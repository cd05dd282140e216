"""Warming and batteries by hand."""

from math import exp, inf, log

import pytest

from orrery.hardware.heat import Body

PHONE = Body(idle_w=1.0, sustained_w=4.0, time_constant_s=60.0, battery_j=36_000.0)


def test_a_device_throttles_when_its_case_has_the_warmth_of_what_it_keeps_up():
    # at 7 W the excess over idle goes to 6 W; half of that, 3 W, is reached after tau ln 2
    assert PHONE.throttles_after_s(7.0) == pytest.approx(60.0 * log(2.0))
    # the warmth then, in watts of excess: 6 (1 - exp(-t / tau)) = 3
    assert 6.0 * (1.0 - exp(-PHONE.throttles_after_s(7.0) / 60.0)) == pytest.approx(3.0)
    assert PHONE.throttles_after_s(4.0) == inf
    assert PHONE.throttles_after_s(4.001) > 400.0


def test_a_battery_gives_full_power_first_and_what_is_kept_up_then():
    cool_s = 60.0 * log(2.0)
    assert PHONE.lasts_s(7.0, 4.0) == pytest.approx(cool_s + (36_000.0 - 7.0 * cool_s) / 4.0)
    # what never throttles is drawn evenly, and a battery that is empty before has no second part
    assert PHONE.lasts_s(3.0, 3.0) == 12_000.0
    assert Body(idle_w=1.0, sustained_w=4.0, time_constant_s=60.0, battery_j=70.0).lasts_s(7.0, 4.0) == 10.0
