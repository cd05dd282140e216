"""Lookup tables of a multiply-accumulate: counts by hand, and what must cost more."""

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.hardware.lut_count import mac_luts, product_luts
from orrery.numerics.names import get_element


def total(name, terms=1024, other=None):
    return mac_luts(get_element(name), get_element(other or name), terms).total


def test_counts_by_hand():
    assert product_luts(1, 6) == product_luts(6, 1) == 6  # one row of ands
    assert product_luts(2, 4) == 5  # one row that adds two partial products of four bits
    assert product_luts(8, 8) == 7 * 9
    assert total("int8") == 63 + 16 + 10
    found = mac_luts(get_element("e2m1"), get_element("e2m1"), 1024)
    # 2 x 2 bits; exponents of 2 bits, two hidden bits, a sign; 4 + 4 bits through 5 positions; those, sign, headroom
    assert (found.multiplier, found.exponents, found.shifter, found.accumulator) == (3, 6, 16, 19)


def test_more_bits_and_longer_sums_cost_more():
    assert np.all(np.diff([total(f"int{b}") for b in range(3, 9)]) > 0)
    assert np.all(np.diff([total(f"e2m{m}") for m in range(1, 5)]) > 0)
    assert np.all(np.diff([total(f"e{e}m1") for e in range(1, 6)]) > 0)
    assert total("int4", 4096) == total("int4", 1024) + 2
    assert total("int4", other="int8") == total("int8", other="int4")


def test_a_float_costs_more_than_an_integer_of_as_many_bits_until_multipliers_rule():
    assert all(total(f"e2m{b - 3}finite") > total(f"int{b}") for b in (4, 5, 6))
    assert total("e2m5finite") < total("int8") + 40
    assert total("e5m2") > 2 * total("int8")


@pytest.mark.parametrize(
    ("weight", "activation", "terms"), [("int4", "e2m1", 8), ("nf4", "nf4", 8), ("int4", "int4", 0)]
)
def test_what_is_not_counted_is_refused(weight, activation, terms):
    with pytest.raises(OutOfRange, match="write"):
        mac_luts(get_element(weight), get_element(activation), terms)
