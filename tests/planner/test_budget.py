"""Replicas that a budget holds, by the scarcest of devices, dollars and rated watts."""

from math import inf
from types import SimpleNamespace

import pytest

from orrery.planner.budget import Budget, Weight, weight_of

ONE = Weight(num_devices=2, usd_per_hour=3.0, power_w=1000.0)


@pytest.mark.parametrize(
    ("budget", "most"),
    [
        (Budget(max_devices=9), 4),
        (Budget(max_devices=9, max_usd_per_hour=10.0), 3),
        (Budget(max_devices=9, max_usd_per_hour=10.0, max_power_w=2000.0), 2),
        (Budget(max_devices=9, max_usd_per_hour=2.9), 0),
        (Budget(max_devices=1), 0),
    ],
)
def test_the_scarcest_of_all_counts(budget, most):
    assert budget.most(ONE) == most


def test_tenths_that_add_up_fit():
    """Three times 0.1 $ is a little more than 0.3 in floating point."""
    assert Budget(max_devices=9, max_usd_per_hour=0.3).most(Weight(num_devices=1, usd_per_hour=0.1, power_w=1.0)) == 3


def test_what_is_used_is_gone():
    left = Budget(max_devices=9, max_usd_per_hour=10.0, max_power_w=inf).less(ONE.times(2))
    assert left == Budget(max_devices=5, max_usd_per_hour=4.0, max_power_w=inf)
    assert left.most(ONE) == 1


def test_a_share_is_of_what_is_scarcest():
    budget = Budget(max_devices=10, max_usd_per_hour=30.0, max_power_w=2000.0)
    assert budget.share(ONE) == 0.5  # of the watts; 0.2 of the devices, 0.1 of the dollars
    assert Budget(max_devices=10).share(ONE) == 0.2


def test_a_price_that_is_not_known_fits_no_budget_of_dollars():
    unknown = Weight(num_devices=1, usd_per_hour=None, power_w=1.0)
    assert Budget(max_devices=9, max_usd_per_hour=10.0).most(unknown) == 0
    assert Budget(max_devices=9).most(unknown) == 9
    assert (ONE + unknown).usd_per_hour is None
    assert ONE.times(2) == ONE + ONE


def test_rated_watts_are_the_device_at_its_clock_and_its_part_of_the_machine():
    device = SimpleNamespace(power_limit_w=700.0, host_power_w=575.0)
    option = SimpleNamespace(device=device, tariff=SimpleNamespace(usd_per_hour=2.0))
    assert weight_of(option, 8) == Weight(num_devices=8, usd_per_hour=16.0, power_w=8 * 1275.0)
