"""A host that is slower than a usual x86 server: what of an engine's constants it stretches."""

import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.engines import HOST_WORK, get_engine, on_device

GRACE = 1.2
"""What whole steps of runs on GH200 show; a linear layer's forward in PyTorch alone takes 37.08 us for 13.48 us."""


def test_one_ratio_holds_for_one_processor():
    for name in ("gb200", "gb300", "gh200-96gb", "gh200-144gb"):
        assert get_device(name).host_time_ratio == GRACE
    assert GRACE < 37.08 / 13.48
    assert get_device("b200").host_time_ratio == 1.0


def test_one_threads_work_takes_so_much_longer_and_nothing_else():
    """The same release on the same generation: 1 ms of scheduling becomes 1.2 ms, the gaps of the device stay."""
    near, far = (get_engine("tensorrt-llm", "1.2", get_device(name)) for name in ("b200", "gb200"))
    for name in HOST_WORK:
        assert getattr(far, name) == pytest.approx(GRACE * getattr(near, name))
        assert far.facts[name].value == pytest.approx(GRACE * near.facts[name].value)
    for name in ("per_layer_s", "sampling_s", "handover_s", "memory_ratio", "max_num_seqs"):
        assert getattr(far, name) == getattr(near, name)


def test_fitted_constants_are_stretched_alike():
    constants = {"step_s": 1e-3, "per_layer_s": 1e-5}
    assert on_device(constants, get_device("gb200")) == pytest.approx({"step_s": 1.2e-3, "per_layer_s": 1e-5})
    assert on_device(constants, get_device("h100-sxm")) == constants
