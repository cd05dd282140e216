"""Narrow products on vector registers: lanes by hand, packing, both roofs, and what is refused."""

from dataclasses import replace

import pytest

from orrery.base.errors import OutOfRange
from orrery.kernels.lowbit.lanes import VectorCores, product_s, products_per_instruction

CORES = VectorCores(
    num_cores=4, clock_hz=1e9, register_bits=128, num_units=1, has_dot_products=True, memory_bytes_per_s=1e10
)


@pytest.mark.parametrize(
    ("weights", "activations", "has_dot", "expected"),
    [
        (16, 16, True, 8),
        (8, 8, True, 16),
        (4, 8, True, 16),
        (4, 4, True, 32),
        (8, 8, False, 8),
        (4, 4, False, 16),
    ],
)
def test_products_of_one_multiply(weights, activations, has_dot, expected):
    assert products_per_instruction(replace(CORES, has_dot_products=has_dot), weights, activations) == expected


def test_a_lone_row_waits_for_the_weights():
    assert product_s(1, 1000, 1000, 16, 16, CORES) == pytest.approx((2e6 + 2000 + 2000) / 1e10)
    ratio = product_s(1, 1000, 1000, 16, 16, CORES) / product_s(1, 1000, 1000, 8, 8, CORES)
    assert 1.9 < ratio <= 2.0


def test_many_rows_are_bound_by_multiplies():
    wide, narrow = (product_s(512, 1024, 1024, *bits, CORES) for bits in ((16, 16), (4, 8)))
    assert wide == pytest.approx(512 * 1024 * 1024 / 8 / 4e9)
    assert 1.8 < wide / narrow < 2.0


def test_other_widths_are_refused():
    with pytest.raises(OutOfRange, match="write 4, 8 or 16"):
        products_per_instruction(CORES, 3, 5)


def test_spreading_and_scaling_are_instructions_too():
    """Weights of 4 bits for 8: a mask and a shift for 16 of them; three instructions for four results."""
    many = replace(CORES, memory_bytes_per_s=1e18)
    multiplied, spread, scaled = 8 * 64 * 32 / 16, 2 * 64 * 32 / 16, 3 * 8 * 64 / 4
    assert product_s(8, 64, 32, 4, 8, many) == pytest.approx((multiplied + spread + scaled) / 4e9)
    assert product_s(8, 64, 32, 8, 8, many) == pytest.approx((multiplied + scaled) / 4e9)
    assert product_s(8, 64, 32, 16, 16, many) == pytest.approx(2 * multiplied / 4e9)
    assert product_s(8, 64, 32, 8, 16, many) == pytest.approx((2 * multiplied + 2 * 64 * 32 / 8) / 4e9)
