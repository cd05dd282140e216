"""Constants of a device from a few dozen timed products."""

from dataclasses import replace

import numpy as np
import pytest

from fit.gemm_few_shot import refit, time_with
from orrery.catalog.devices import get_device
from orrery.kernels.ops import Gemm
from orrery.kernels.resolve import find


def test_forty_timings_move_the_constants_to_a_device_of_another_speed():
    device = get_device("h100-sxm")
    inherited = replace(find(device, "gemm", "bf16", "tensorrt-llm"), residual=None)
    truth = replace(inherited, constants={**inherited.constants, "bandwidth_frac": 0.6, "overhead_s": 4e-6})
    random = np.random.default_rng(0)
    op = Gemm(
        m=random.integers(1, 4096, 40),
        n=random.integers(64, 16384, 40),
        k=random.integers(64, 16384, 40),
        format="bf16",
    )
    measured = time_with(op, device, truth) * np.exp(random.normal(0, 0.01, 40))
    found = refit(op, measured, device, inherited)
    after = time_with(op, device, replace(inherited, constants=found))
    assert np.median(np.abs(after / measured - 1)) < 0.02
    assert found["bandwidth_frac"] == pytest.approx(0.6, rel=0.1)
