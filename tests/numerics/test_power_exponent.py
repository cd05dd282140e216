"""Powers keep products, put levels where numbers are, and run on whole numbers."""

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.numerics.power_exponent import (
    codes_of,
    raised,
    searched_exponent,
    values_of,
)

RNG = np.random.default_rng(0)
TENSORS = {
    "normal": RNG.standard_normal((64, 256)),
    "student_t": RNG.standard_t(4.0, (64, 256)),
    "laplace": RNG.laplace(size=(64, 256)),
}


def round_trip_error(x: np.ndarray, bits: int, exponent: float) -> float:
    return float(((x - values_of(*codes_of(x, bits, exponent), bits, exponent)) ** 2).sum())


def searched(x: np.ndarray, bits: int) -> float:
    return searched_exponent(lambda exponent: round_trip_error(x, bits, exponent))


@pytest.mark.parametrize("exponent", [0.3, 0.5, 0.77, 1.0, 1.3])
def test_products_are_kept_and_exponents_add(exponent: float):
    x, y = RNG.standard_normal(200), RNG.standard_normal(200)
    assert np.allclose(raised(x * y, exponent), raised(x, exponent) * raised(y, exponent))
    assert np.allclose(np.abs(raised(x, exponent) * raised(x, 0.4)), np.abs(raised(x, exponent + 0.4)))
    assert np.allclose(raised(raised(x, exponent), 1.0 / exponent), x)
    assert np.array_equal(raised(-x, exponent), -raised(x, exponent))


@pytest.mark.parametrize("law", TENSORS)
@pytest.mark.parametrize("bits", [3, 4, 6, 8])
def test_a_searched_exponent_has_less_error_than_even_steps(law: str, bits: int):
    x = TENSORS[law]
    exponent = searched(x, bits)
    assert exponent < 1.0
    assert round_trip_error(x, bits, exponent) < round_trip_error(x, bits, 1.0)


def test_heavier_tails_want_a_smaller_exponent():
    assert searched(TENSORS["student_t"], 4) < searched(TENSORS["normal"], 4)


def test_evenly_spread_numbers_want_even_steps():
    assert searched(RNG.uniform(-1, 1, (64, 256)), 6) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("law", TENSORS)
def test_the_search_finds_the_least_error_of_a_fine_sweep(law: str):
    x = TENSORS[law]
    least = min(round_trip_error(x, 4, e) for e in np.linspace(0.2, 1.2, 101))
    assert round_trip_error(x, 4, searched(x, 4)) <= 1.01 * least


def test_an_exponent_of_one_is_the_even_grid():
    x = TENSORS["normal"]
    codes, scale = codes_of(x, 4, 1.0)
    assert np.array_equal(codes, np.rint(x / scale * 7))
    assert np.allclose(values_of(codes, scale, 4, 1.0), codes * scale / 7)


def test_rows_of_zeros_stay_zero():
    codes, scale = codes_of(np.zeros((2, 4)), 4, 0.5)
    assert not values_of(codes, scale, 4, 0.5).any()


@pytest.mark.parametrize("bits", [1, 17])
def test_widths_without_a_use_are_refused(bits: int):
    with pytest.raises(OutOfRange, match="write 2 to 16"):
        codes_of(np.ones(3), bits, 0.5)
