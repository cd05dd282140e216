"""Power between idle and the limit, and energy as power times time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.catalog.devices import device_names, get_device
from orrery.hardware.device import Device
from orrery.kernels.energy import calibration, demand_w, energy_j, power_w, step_law, weighted_s
from orrery.kernels.energy._kernel import drawn_frac, power_near

FORMATS = ("bf16", "fp8", "nvfp4", "int4_weight_only")


@settings(deadline=None)
@given(
    name=st.sampled_from(["h100-sxm", "b200", "a100-sxm-80gb", "mi300x"]),
    format=st.sampled_from(FORMATS),
    flops=st.floats(0, 1.5),
    moved=st.floats(0, 1.5),
    time=st.floats(1e-7, 1e3),
)
def test_energy_lies_between_idle_and_the_limit(name: str, format: str, flops: float, moved: float, time: float):
    device = get_device(name)
    peak = max(device.dense_flops_per_s.values())
    energy = energy_j(device, format, time, flops * peak * time, moved * device.memory_bandwidth_bytes_per_s * time)
    assert device.idle_power_w * time * (1 - 1e-9) <= energy <= device.power_limit_w * time * (1 + 1e-9)


def test_no_time_takes_no_energy():
    assert energy_j(get_device("h100-sxm"), "bf16", np.array([0.0, 1.0]), 0.0, 0.0)[0] == 0.0


@pytest.mark.parametrize("name", ["h200-sxm", "b200", "l40s"])
def test_more_work_a_second_draws_more(name: str):
    device = get_device(name)
    rate = np.linspace(0, 1, 30)
    by_flops = demand_w(device, "bf16", rate * device.dense_flops_per_s["bf16"], 0.0)
    by_bytes = demand_w(device, "bf16", 0.0, rate * device.memory_bandwidth_bytes_per_s)
    assert (np.diff(by_flops) > 0).all()
    assert (np.diff(by_bytes) > 0).all()
    assert by_flops[0] == by_bytes[0] >= device.idle_power_w


def test_a_full_matrix_rate_would_pass_the_limit_of_a_hopper():
    """Measured: large products in 16 bits sit at the limit, so the clock must give way."""
    device = get_device("h200-sxm")
    assert demand_w(device, "bf16", 0.8 * device.dense_flops_per_s["bf16"], 1e12) > device.power_limit_w
    assert power_w(device, "bf16", 0.8 * device.dense_flops_per_s["bf16"], 1e12) == device.power_limit_w


def test_the_power_does_not_depend_on_the_unit_of_time():
    device = get_device("h100-sxm")
    slow = replace(
        device,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s / 4,
        dense_flops_per_s={k: v / 4 for k, v in device.dense_flops_per_s.items()},
    )
    assert power_w(device, "fp8", 4e14, 1e12) == power_w(slow, "fp8", 1e14, 2.5e11)


def test_every_device_of_the_catalogue_answers():
    for name in device_names():
        device = get_device(name)
        assert device.idle_power_w <= power_w(device, "bf16", 1e12, 1e11) <= device.power_limit_w
        assert calibration(device, "bf16").spread.high_95_ratio > 1


def _by_hand(idle_w: float, limit_w: float) -> Device:
    """A device of 100 FLOP/s and 10 bytes/s whose constants are round numbers."""
    shares = {"awake_frac": 0.1, "matrix_frac": 0.4, "memory_frac": 0.2, "concave_power": 0.5}
    device = get_device("h100-sxm")
    known = {k: replace(c, constants=shares) for k, c in device.calibrations.items() if k[0] == "power"}
    return replace(
        device,
        idle_power_w=idle_w,
        power_limit_w=limit_w,
        calibrations=known,
        dense_flops_per_s={"bf16": 100.0},
        memory_bandwidth_bytes_per_s=10.0,
    )


def test_shares_are_of_what_lies_between_idle_and_the_limit():
    """A quarter of both roofs: 200 + (1000 - 200) (0.1 + 0.4 sqrt(1/4) + 0.2 sqrt(1/4)) = 200 + 800 x 0.4 = 520 W."""
    device = _by_hand(200.0, 1000.0)
    assert power_w(device, "bf16", 25.0, 2.5) == pytest.approx(520.0)
    assert demand_w(device, "bf16", 0.0, 0.0) == pytest.approx(200.0 + 800.0 * 0.1)
    assert energy_j(device, "bf16", 3.0, 75.0, 7.5) == pytest.approx(3.0 * 520.0)


def test_idle_shifts_what_is_drawn_by_less_than_itself():
    """Idle counts once: 100 W more of it, at a share of 0.4, is 100 (1 - 0.4) = 60 W more."""
    more = power_w(_by_hand(300.0, 1000.0), "bf16", 25.0, 2.5) - power_w(_by_hand(200.0, 1000.0), "bf16", 25.0, 2.5)
    assert more == pytest.approx(60.0)


def _step_by_hand() -> Device:
    """The same device, whose steps draw 0.5 (flops/s / peak)^(1/2) + 0.2 (bytes/s / bandwidth)^(1/2) of the span."""
    device = _by_hand(200.0, 1000.0)
    known = get_device("h100-sxm").calibrations
    shares = {"matrix_frac": 0.5, "memory_frac": 0.2, "concave_power": 0.5}
    steps = {k: replace(c, constants=shares) for k, c in known.items() if k[0] == "step_power"}
    return replace(device, calibrations=steps, dense_flops_per_s={"bf16": 100.0, "fp8": 200.0})


def test_a_step_of_two_formats_is_drawn_once():
    """50 FLOP in 16 bits and 100 in 8 are half a second each at their peaks: 1 s of 4 at full rate, a quarter. 10 bytes
    are 1 s of 4. So 200 + 800 (0.5 sqrt(1/4) + 0.2 sqrt(1/4)) = 200 + 800 x 0.35 = 480 W."""
    device = _step_by_hand()
    first, second = weighted_s(device, "bf16", 50.0, 4.0), weighted_s(device, "fp8", 100.0, 6.0)
    matrix_s, memory_s = first[0] + second[0], first[1] + second[1]
    assert step_law(device).power_w(matrix_s, memory_s, 4.0) == pytest.approx(480.0)
    assert step_law(device).demand_frac(matrix_s, memory_s, 4.0) == pytest.approx(0.35)
    assert drawn_frac(matrix_s, memory_s, 4.0, 0.5) == pytest.approx(0.35)


def test_a_step_that_asks_for_more_than_the_limit_gets_the_limit():
    device = _step_by_hand()
    matrix_s, memory_s = weighted_s(device, "bf16", 900.0, 0.0)
    assert step_law(device).demand_frac(matrix_s, memory_s, 1.0) == pytest.approx(1.5)
    assert step_law(device).power_w(matrix_s, memory_s, 1.0) == 1000.0


def test_the_power_of_many_steps_is_that_of_each():
    """200 W idle, 1000 W at most: no work, a demand below the limit at either roof and at both, and one above it."""
    law = step_law(_step_by_hand())
    matrix_s, memory_s = np.array([0.0, 0.2, 0.0, 0.2, 5.0]), np.array([0.0, 0.0, 0.3, 0.3, 5.0])
    wall_s = np.array([2.0, 2.0, 2.0, 1.0, 1.0])
    found = law.powers_w(matrix_s, memory_s, wall_s)
    assert found.tolist() == pytest.approx(
        [law.power_w(*of_step) for of_step in zip(matrix_s.tolist(), memory_s.tolist(), wall_s.tolist(), strict=True)]
    )
    assert (found[0], found[4]) == (200.0, 1000.0)
    assert 200.0 < found[1] < 1000.0


def test_a_step_without_work_idles():
    law = step_law(_step_by_hand())
    assert law.power_w(0.0, 0.0, 2.0) == law.power_w(0.0, 0.0, 0.0) == 200.0


@settings(deadline=None)
@given(x=st.floats(1e-6, 10.0), more=st.floats(-2e-3, 2e-3), exponent=st.floats(0.0, 1.0))
def test_the_power_of_a_number_nearby(x: float, more: float, exponent: float):
    assert power_near(x * (1.0 + more), exponent, x, x**exponent) == pytest.approx(
        (x * (1.0 + more)) ** exponent, rel=4e-16
    )


def test_the_power_of_a_number_that_is_not_near_is_its_own():
    assert power_near(2.0, 0.5, 0.0, 0.0) == 2.0**0.5
    assert power_near(0.0, 0.5, 1.0, 1.0) == 0.0
    assert power_near(4.0, 0.5, 1.0, 1.0) == 2.0
