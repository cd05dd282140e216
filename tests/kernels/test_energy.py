"""Power between idle and the limit, and energy as power times time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.catalog.devices import device_names, get_device
from orrery.kernels.energy import calibration, demand_w, energy_j, power_w

FORMATS = ("bf16", "fp8", "nvfp4", "int4_weight_only")


@settings(deadline=None)
@given(
    name=st.sampled_from(["h100-sxm", "b200", "a100-sxm-80gb", "mi300x"]), format=st.sampled_from(FORMATS),
    flops=st.floats(0, 1.5), moved=st.floats(0, 1.5), time=st.floats(1e-7, 1e3),
)  # fmt: skip
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
        device, memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s / 4,
        dense_flops_per_s={k: v / 4 for k, v in device.dense_flops_per_s.items()},
    )  # fmt: skip
    assert power_w(device, "fp8", 4e14, 1e12) == power_w(slow, "fp8", 1e14, 2.5e11)


def test_every_device_of_the_catalogue_answers():
    for name in device_names():
        device = get_device(name)
        assert device.idle_power_w <= power_w(device, "bf16", 1e12, 1e11) <= device.power_limit_w
        assert calibration(device, "bf16").spread.high_95_ratio > 1
