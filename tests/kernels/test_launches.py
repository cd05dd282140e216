"""A queue of kernels: host-bound, device-bound, and a walk by hand in between."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.kernels.launches import run


def walked(kernels, dispatch_s, launch_s):
    """The same, kernel by kernel."""
    now, waited, end = 0.0, 0.0, 0.0
    for kernel in kernels:
        now += dispatch_s
        start = max(now + launch_s, end)
        waited, end = waited + start - now, start + kernel
    return end, waited


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(1e-7, 1e-3), min_size=1, max_size=40), st.floats(1e-7, 1e-4), st.floats(0, 1e-5))
def test_a_queue_is_what_a_walk_along_it_finds(kernels, dispatch_s, launch_s):
    found = run(np.array(kernels), dispatch_s, launch_s)
    end, waited = walked(kernels, dispatch_s, launch_s)
    assert found.latency_s == pytest.approx(end)
    assert found.launch_and_queuing_s == pytest.approx(waited, abs=1e-12)
    assert 0 <= found.idle_frac < 1


def test_a_slow_host_pays_its_launches_and_a_slow_device_its_kernels():
    short, long = np.full(100, 1e-6), np.full(100, 50e-6)
    host = run(short, 10e-6, 2e-6)
    assert host.latency_s == pytest.approx(100 * 10e-6 + 2e-6 + 1e-6)
    assert host.launch_and_queuing_s == pytest.approx(100 * 2e-6)
    device = run(long, 10e-6, 2e-6)
    assert device.latency_s == pytest.approx(12e-6 + 100 * 50e-6)
    assert device.launch_and_queuing_s > 10 * host.launch_and_queuing_s
    assert device.idle_frac < 0.01 < host.idle_frac
