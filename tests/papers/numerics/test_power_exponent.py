"""NUPES's exponents: learned where numbers are, and products on whole numbers."""

import numpy as np
import pytest

from orrery.numerics.power_exponent import (
    codes_of,
    searched_exponent,
    values_of,
)
from orrery_papers.nupes.exponent import integer_product, learned_exponent, product_table, round_trip_error

RNG = np.random.default_rng(0)


TENSORS = {
    "normal": RNG.standard_normal((64, 256)),
    "student_t": RNG.standard_t(4.0, (64, 256)),
    "laplace": RNG.laplace(size=(64, 256)),
}


def searched(x: np.ndarray, bits: int) -> float:
    return searched_exponent(lambda exponent: round_trip_error(x, bits, exponent))


@pytest.mark.parametrize("law", TENSORS)
@pytest.mark.parametrize("bits", [4, 6])
def test_gradient_steps_learn_nearly_the_searched_exponent(law: str, bits: int):
    x = TENSORS[law]
    learned = learned_exponent(x, bits)
    assert round_trip_error(x, bits, learned) <= 1.05 * round_trip_error(x, bits, searched(x, bits))
    assert round_trip_error(x, bits, learned) < round_trip_error(x, bits, 1.0)


def test_matrix_products_run_on_whole_numbers_alone():
    exponent, bits, fraction_bits = 0.6, 4, 20
    x, w = RNG.standard_normal((9, 48)), RNG.standard_t(4.0, (5, 48))
    (x_codes, x_scale), (w_codes, w_scale) = codes_of(x, bits, exponent), codes_of(w, bits, exponent)
    table = product_table(bits, exponent, fraction_bits)
    assert table.dtype == np.int64
    assert len(table) == 7 * 7 + 1
    found = integer_product(x_codes, w_codes, table)
    assert found.dtype == np.int64
    exact = values_of(x_codes, x_scale, bits, exponent) @ values_of(w_codes, w_scale, bits, exponent).T
    assert np.abs(found / 2**fraction_bits * x_scale * w_scale.T - exact).max() < 48 * 2.0 ** -(fraction_bits - 3)
