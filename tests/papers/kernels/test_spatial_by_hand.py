"""FuseMax's energies on an array of 4 x 4 multipliers, every figure by hand."""

import math

import pytest

from orrery.kernels.spatial import attention as spatial
from orrery_papers.fusemax import energy

WORK = spatial.Attention(num_heads=3, num_rows=16, num_head_features=8)  # 768 scores


ARRAY = spatial.SpatialArray(num_side=4, clock_hz=10.0, buffer_bytes=256.0, memory_bandwidth_bytes_per_s=1e9)


ENERGIES = energy.Energies(
    multiply_add_j=2.0,
    add_j=3.0,
    divide_j=5.0,
    exponential_j=7.0,
    register_j=11.0,
    buffer_j=13.0,
    memory_j_per_bytes=17.0,
)


def test_energies_by_hand():
    """A multiply-add with its sum read and written: 2 + 2 x 11. Three passes add 2 x 3 + 7 + 5 + 7 x 13 a score."""
    run = spatial.three_pass(WORK, ARRAY)
    softmax = 2 * 3 + 7 + 5 + 7 * 13
    products = 2 * 768 * 8 * (2 + 22)
    assert energy.three_pass_j(WORK, run.memory_bytes, ENERGIES) == pytest.approx(
        products + 768 * softmax + 17 * run.memory_bytes
    )
    one = spatial.one_pass(WORK, ARRAY)
    blocks = 768 / 4
    macs = 768 * (16 + 6) + blocks * (6 + 1 + 8)
    adds = 768 * 2 + blocks * (2 + 8)
    divides = 3 * 16 * 8
    expected = macs * 24 + adds * 3 + divides * 5 + 17 * one.memory_bytes
    assert energy.one_pass_j(WORK, one.memory_bytes, ARRAY.num_side, ENERGIES) == pytest.approx(expected)
    assert math.isclose(energy.products_j(10.0, ENERGIES), 240.0)
