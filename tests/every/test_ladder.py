"""The ladder: no answer beats the bare roofs of the device, whatever the op, the size and the device.

Cold operands, so that no cache can explain less than the memory roof. An answer may dip a little under a roof where
measurements say so (a boost clock above the stated one), never by more than ``SLACK``.
"""

import numpy as np
import pytest
from battery import over
from drawn_ops import ops

from orrery import kernels
from orrery.base.errors import OutOfRange
from orrery.catalog.devices import device_names, get_device
from orrery.kernels.ops import Gemm

SLACK = 0.9
KNOWN_MISSES = {
    "dc-roma-ii": "constants pooled over GPUs say little of a CPU with a handful of cores",
    "sifive-p550": "constants pooled over GPUs say little of a CPU with a handful of cores",
    "groq-lpu-v1": "its vector rate is assumed, and far below what its on-chip memory feeds",
}
"""Devices on which some answer beats a roof, and why; a device that gets better must leave the list."""


@over([name for name in device_names() if name not in KNOWN_MISSES])
def test_no_answer_beats_the_roofs(name):
    beats_no_roof(get_device(name))


@over(KNOWN_MISSES)
def test_the_known_misses_go_on_missing(name):
    with pytest.raises(AssertionError, match="roof"):
        beats_no_roof(get_device(name))


def beats_no_roof(device):
    """Ops drawn for the device take as long as its roofs say, or longer."""
    rng = np.random.default_rng(sum(map(ord, device.name)))
    format = "bf16" if "bf16" in device.dense_flops_per_s else "fp16"
    for op in ops(rng, format):
        try:
            timing = kernels.predict(op, device)
        except OutOfRange:  # a device may lack what an op needs
            continue
        time_s = np.asarray(timing.time_s)
        assert np.isfinite(time_s).all(), type(op).__name__
        assert (time_s > 0).all(), type(op).__name__
        assert (time_s >= SLACK * np.asarray(timing.compute_s)).all(), f"{type(op).__name__} beats the arithmetic roof"
        beyond = np.asarray(timing.bytes) > 4 * device.last_level_cache_bytes
        roof_s = np.where(beyond, np.asarray(timing.memory_s), 0.0)
        assert (time_s >= SLACK * roof_s).all(), f"{type(op).__name__} beats the memory roof"


@over(device_names())
def test_big_products_grow_with_every_size(name):
    device = get_device(name)
    format = "bf16" if "bf16" in device.dense_flops_per_s else "fp16"
    big = 4096 * 2 ** np.arange(6)
    flat = np.full_like(big, 8192)
    for sizes in ({"m": big, "n": flat, "k": flat}, {"m": flat, "n": big, "k": flat}, {"m": flat, "n": flat, "k": big}):
        try:
            time_s = np.asarray(kernels.predict(Gemm(format=format, **sizes), device).time_s)
        except OutOfRange:
            return
        assert (np.diff(time_s) > 0).all(), sorted(sizes)
