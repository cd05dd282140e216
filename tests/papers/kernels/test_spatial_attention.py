"""FuseMax's energies of attention on an array: what one pass saves, and what spills."""

from dataclasses import replace

import pytest

from orrery.kernels.spatial.attention import (
    Attention,
    SpatialArray,
    one_pass,
    three_pass,
)
from orrery_papers.fusemax.energy import Energies, one_pass_j, three_pass_j

WORK = Attention(num_heads=64 * 12, num_rows=4096, num_head_features=64)


LARGE = SpatialArray(
    num_side=256, clock_hz=940e6, buffer_bytes=32 * 2.0**20, memory_bandwidth_bytes_per_s=400 * 2.0**30
)


SMALL = replace(LARGE, buffer_bytes=16 * 2.0**20)


PLAIN = Energies(
    multiply_add_j=1.0,
    add_j=0.0,
    divide_j=0.0,
    exponential_j=0.0,
    register_j=0.0,
    buffer_j=0.0,
    memory_j_per_bytes=0.0,
)


def test_energy_of_products_alone_differs_by_the_exponentials():
    before = three_pass_j(WORK, three_pass(WORK, LARGE).memory_bytes, PLAIN)
    after = one_pass_j(WORK, one_pass(WORK, SMALL).memory_bytes, SMALL.num_side, PLAIN)
    assert before == 128 * WORK.num_scores
    assert after / before == pytest.approx((128 + 6 + (6 + 1 + 64) / 256) / 128)


def test_memory_and_the_buffer_cost_three_passes_alone():
    dear = replace(PLAIN, multiply_add_j=0.0, buffer_j=1.0)
    assert three_pass_j(WORK, three_pass(WORK, LARGE).memory_bytes, dear) == 7 * WORK.num_scores
    assert one_pass_j(WORK, one_pass(WORK, SMALL).memory_bytes, SMALL.num_side, dear) == 0
