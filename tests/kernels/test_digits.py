"""Integers as digits and products by tables: by hand, exact for every integer, and counted."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.kernels.lowbit.digits import ENCODINGS, by_tables, digits
from orrery.scenario.experiment import run_experiment


def test_seven_by_hand():
    """0111; 8 - 1; and in radix four 2 x 4 - 1."""
    seven = np.array([7])
    assert digits(seven, 4, "two's complement").values.tolist() == [[1, 1, 1, 0]]
    assert digits(seven, 4, "canonical signed digits").values.tolist() == [[-1, 0, 0, 1]]
    assert digits(seven, 4, "booth radix 4").values.tolist() == [[-1, 2]]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("bits", [2, 5, 8])
def test_every_integer_comes_back(encoding, bits):
    every = np.arange(-(2 ** (bits - 1)), 2 ** (bits - 1))
    written = digits(every, bits, encoding)
    assert written.numbers.tolist() == every.tolist()
    if encoding == "canonical signed digits":
        assert not (written.values[:, 1:] * written.values[:, :-1]).any(), "no two digits side by side"


def test_digits_of_all_bytes():
    """Half of the bits; three of four digits of radix four; and a third of the places and a ninth, in signed digits."""
    every = np.arange(-128, 128)
    count = {encoding: digits(every, 8, encoding).per_number for encoding in ENCODINGS}
    assert count["two's complement"] == 4.0
    assert count["booth radix 4"] == pytest.approx(3.0)
    assert count["canonical signed digits"] == pytest.approx(8 / 3 + 1 / 9, abs=0.12)


def test_tables_by_hand():
    """Two weights, 3 and 5, and activations (1, 2) and (1, 1) of three bits: 13 and 8. A table of two weights takes one
    addition; each activation has three bits to pick by; patterns are 01, 10 and 11, and those of zeros."""
    found = by_tables(np.array([[3], [5]]), np.array([[1, 2], [1, 1]]), 2, 3)
    assert found.result.tolist() == [[13], [8]]
    assert (found.num_built, found.num_picked, found.num_distinct) == (1, 6, 3)


def test_tables_of_one_weight_are_its_bits_and_many_tokens_share_patterns():
    rows = run_experiment("digit-products", sizes=("weight_bits=8", "tokens=1,64", "group=1,4")).rows
    assert all(row["is_exact"] for row in rows)
    cost = {(row["way"], row["tokens"]): row["additions_per_product"] for row in rows}
    assert cost["tables, of 1", 1] == cost["tables, of 1", 64] == 8.0
    assert cost["tables, of 4", 1] == (16 - 4 - 1) / 4 + 2.0
    assert cost["tables, of 4", 64] == pytest.approx(2.0, rel=0.03)
    assert cost["tables, patterns once, of 4", 64] < 0.2
    assert cost["canonical signed digits", 1] < cost["booth radix 4", 1] < cost["two's complement", 1]


@pytest.mark.parametrize("size", ["weight_bits=1", "group=3", "spread_ratio=0", "activation_bits=17"])
def test_what_makes_no_sense_is_refused(size):
    with pytest.raises(ScenarioError):
        run_experiment("digit-products", sizes=(size,))
