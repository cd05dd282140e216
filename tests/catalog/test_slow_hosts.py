"""A host that is slower than a usual x86 server: what of an engine's constants it stretches."""

import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.engines import HOST_WORK, get_engine, on_device

GRACE = 2.75
"""37.08 us over 13.48 us: a linear layer's forward in PyTorch, on the hosts of a GB200 and of a DGX H100."""


def test_the_ratio_is_that_of_two_measured_times():
    assert get_device("gb200").host_time_ratio == pytest.approx(37.08 / 13.48, rel=1e-3)
    assert get_device("gb300").host_time_ratio == get_device("gb200").host_time_ratio
    assert get_device("b200").host_time_ratio == 1.0


def test_one_threads_work_takes_so_much_longer_and_nothing_else():
    """The same release on the same generation: 1 ms of scheduling becomes 2.75 ms, the gaps of the device stay."""
    near, far = (get_engine("tensorrt-llm", "1.2", get_device(name)) for name in ("b200", "gb200"))
    for name in HOST_WORK:
        assert getattr(far, name) == pytest.approx(GRACE * getattr(near, name))
        assert far.facts[name].value == pytest.approx(GRACE * near.facts[name].value)
    for name in ("per_layer_s", "sampling_s", "handover_s", "memory_ratio", "max_num_seqs"):
        assert getattr(far, name) == getattr(near, name)


def test_fitted_constants_are_stretched_alike():
    constants = {"step_s": 1e-3, "per_layer_s": 1e-5}
    assert on_device(constants, get_device("gb200")) == pytest.approx({"step_s": 2.75e-3, "per_layer_s": 1e-5})
    assert on_device(constants, get_device("h100-sxm")) == constants
