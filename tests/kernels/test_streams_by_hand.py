"""Streams through memory and what is borrowed from kin, on devices of round numbers."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.kernels.attention.choice import choose
from orrery.kernels.elementwise import _kernel as elementwise
from orrery.kernels.gather import useful_frac
from orrery.kernels.resolve import OTHER_ENGINE, OTHER_FORMAT


@pytest.mark.parametrize(
    ("elements", "stream_s"),
    [
        (16, 64 * 0.75),  # half the cache: all of the gain
        (24, 96 * 0.875),  # three quarters: half of it
        (32, 128),  # just the cache: none
        (50, 200),
        (2, 8 * 0.75),
    ],
)
def test_a_stream_gains_where_its_bytes_fit_the_cache(elements, stream_s):
    """4 bytes an element at half of 2 bytes/s, a quarter less from a cache of 128; 3 operations each at 6 a second."""
    constants, machine = np.array([0.0, 0.5, 2.0, 0.25]), np.array([6.0, 2.0, 128.0])
    out = elementwise.scalar(float(elements), 4.0, 3.0, constants, machine)
    assert out[elementwise.TIME] == stream_s
    assert out[elementwise.COMPUTE] == elements / 2
    assert out[elementwise.MEMORY] == elements * 2
    assert (out[elementwise.FLOPS], out[elementwise.BYTES]) == (elements * 3, elements * 4)


def test_a_launch_and_a_stream_meet_at_right_angles_with_a_power_of_two():
    """A stream of 4 s beyond any cache and a launch of 3 s: 5 s, of which the launch adds 1."""
    out = elementwise.scalar(4.0, 1.0, 0.0, np.array([3.0, 0.5, 2.0, 0.25]), np.array([6.0, 2.0, 1.0]))
    assert (out[elementwise.TIME], out[elementwise.OVERHEAD]) == pytest.approx((5.0, 1.0))
    nothing = elementwise.scalar(0.0, 1.0, 0.0, np.array([3.0, 0.5, 2.0, 0.25]), np.array([6.0, 2.0, 1.0]))
    assert (nothing[elementwise.TIME], nothing[elementwise.OVERHEAD]) == (0.0, 0.0)


@pytest.mark.parametrize("sizes", [(0.0, 32.0), (64.0, 0.0), (-64.0, 32.0), (64.0, -32.0), (float("nan"), 32.0)])
def test_no_vector_and_no_line_have_no_share(sizes):
    with pytest.raises(OutOfRange, match=f"vectors of {sizes[0]:g} and lines of {sizes[1]:g} bytes"):
        useful_frac(*sizes)


@pytest.mark.parametrize(
    ("measured", "engine", "factor"),
    [
        ("bf16+fp8", "vllm", 1.0),
        ("bf16+bf16", "vllm", OTHER_FORMAT),
        ("bf16+fp8", "tensorrt-llm", OTHER_ENGINE),
        ("bf16+bf16", "tensorrt-llm", OTHER_FORMAT * OTHER_ENGINE),
    ],
)
def test_intervals_widen_where_constants_are_borrowed(measured, engine, factor):
    """A decode step asked of vLLM in BF16 on an FP8 cache, where one class of work alone was measured."""
    device, key = get_device("h100-sxm"), ("attention_decode", measured, engine)
    own = device.calibrations[key]
    found = choose(replace(device, calibrations={key: own}), "attention_decode", "bf16", "fp8", "vllm").calibration
    assert found.spread.high_80_ratio == pytest.approx(own.spread.high_80_ratio**factor)
    assert found.spread.low_80_ratio == pytest.approx(own.spread.low_80_ratio**factor)
