"""Lookup tables of a multiply-accumulate: counts by hand, and what must cost more."""

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.hardware.lut_count import DspCount, mac_dsps, mac_luts, product_luts
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


def test_blocks_multiply_and_tables_shift_and_add():
    def blocks(name):
        return mac_dsps(get_element(name), get_element(name), 1024)

    assert blocks("int4") == DspCount(slices=0.25, luts=0)  # four at once
    assert blocks("int5") == blocks("int8") == DspCount(slices=0.5, luts=0)
    assert blocks("int9") == blocks("int16") == DspCount(slices=1.0, luts=0)
    # significands of 2 + 2 bits with signs: four at once; exponents 6, shifter 16, accumulator 19 stay in tables
    assert blocks("e2m1") == DspCount(slices=0.25, luts=6 + 16 + 19)
    assert blocks("e4m3").slices == 0.5
    with pytest.raises(OutOfRange, match="wider than a block"):
        mac_dsps(get_element("int20"), get_element("int20"), 8)


@pytest.mark.parametrize(
    ("weight", "activation", "fits"),
    [("int18", "int18", True), ("int18", "int27", True), ("int19", "int27", False), ("int4", "int28", False)],
)
def test_a_block_multiplies_27_by_18_bits(weight, activation, fits):
    for one, other in ((weight, activation), (activation, weight)):
        if fits:
            assert mac_dsps(get_element(one), get_element(other), 8).slices == 1.0
        else:
            with pytest.raises(OutOfRange, match="wider than a block"):
                mac_dsps(get_element(one), get_element(other), 8)
