"""Circuits by hand: a 32-bit adder of 0.1 pJ and 137 um2, an 8-bit multiplier of 0.2 pJ and 282 um2, cells by area."""

import pytest

from orrery.base.errors import OutOfRange, UnknownName
from orrery.hardware.gates import (
    Circuit,
    adder,
    arithmetic,
    inverter,
    memory_j_per_bit,
    multiplier,
    register,
    selector,
    shift_adder,
)


def parts(circuit: Circuit) -> tuple[float, float]:
    """Energy in pJ and area in um2."""
    return circuit.energy_j * 1e12, circuit.area_m2 * 1e12


def test_circuits_side_by_side_add_energy_and_area():
    both = Circuit(energy_j=3.0, area_m2=5.0) + Circuit(energy_j=1.0, area_m2=2.0)
    assert both == Circuit(energy_j=4.0, area_m2=7.0)
    assert both * 3 == Circuit(energy_j=12.0, area_m2=21.0)


def test_an_adder_is_the_32_bit_one_bit_by_bit():
    assert parts(arithmetic("int32_add")) == pytest.approx((0.1, 137.0))
    assert parts(adder(8)) == pytest.approx((0.025, 34.25))
    assert parts(adder(1)) == pytest.approx((0.003125, 4.28125))


def test_a_multiplier_goes_by_the_product_of_widths():
    assert parts(multiplier(8, 8)) == pytest.approx((0.2, 282.0))
    assert parts(multiplier(8, 16)) == pytest.approx((0.4, 564.0))
    assert parts(multiplier(4, 2)) == pytest.approx((0.025, 35.25))
    assert parts(multiplier(1, 1)) == pytest.approx((0.003125, 4.40625))


def test_cells_have_the_energy_of_so_much_adder():
    # 1370 um2 of adders take a pJ
    assert parts(inverter(5)) == pytest.approx((7.98 / 1370, 7.98))  # 5 x 1.596
    assert parts(register(5)) == pytest.approx((22.61 / 1370, 22.61))  # 5 x 4.522
    assert parts(selector(4, 8)) == pytest.approx((44.688 / 1370, 44.688))  # 3 x 8 x 1.862
    assert parts(selector(1, 8)) == (0.0, 0.0)


def test_a_shift_adder_gates_every_bit_and_adds_one_time_less_than_it_has_bits():
    # 3 x 8 gates of 1.064 um2, two adders of 34.25 um2
    assert parts(shift_adder(3, 8)) == pytest.approx((94.036 / 1370, 94.036))
    assert parts(shift_adder(1, 8)) == pytest.approx((8.512 / 1370, 8.512))


def test_a_bit_of_memory_is_a_64th_of_an_access():
    assert memory_j_per_bit("cache_8_kib") == pytest.approx(0.15625e-12)
    assert memory_j_per_bit("dram") == pytest.approx(20.3125e-12)


@pytest.mark.parametrize("circuit", [adder, inverter, register])
def test_a_word_has_a_bit(circuit):
    with pytest.raises(OutOfRange, match="write 1 or more"):
        circuit(0)
    with pytest.raises(OutOfRange, match="write 1 or more"):
        multiplier(4, 0)
    with pytest.raises(OutOfRange, match="write 1 or more"):
        selector(0, 4)


def test_an_unknown_circuit_lists_those_of_the_table():
    with pytest.raises(UnknownName, match="int8_add"):
        arithmetic("int7_add")
    with pytest.raises(UnknownName):
        memory_j_per_bit("tape")
