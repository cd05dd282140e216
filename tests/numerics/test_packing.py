"""Packed codes: no gaps, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.numerics.packing import pack, unpack


@given(st.integers(1, 32), st.lists(st.integers(0, 2**32 - 1), max_size=70))
def test_codes_come_back_from_the_fewest_bytes(bits, numbers):
    codes = np.array([n % (1 << bits) for n in numbers], dtype=np.uint32)
    stream = pack(codes, bits)
    assert stream.size == -(-codes.size * bits // 8)
    assert np.array_equal(unpack(stream, bits, codes.size), codes)


def test_the_first_code_lies_lowest():
    assert pack(np.array([0x1, 0xF], np.uint8), 4).tolist() == [0xF1]
    assert pack(np.array([1, 2, 3, 4], np.uint8), 3).tolist() == [0b11010001, 0b1000]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ScenarioError, match="at most 15; got 16"):
        pack(np.array([16]), 4)
    with pytest.raises(ScenarioError, match="3 bytes; got 2"):
        unpack(np.zeros(2, np.uint8), 6, 3)
    with pytest.raises(OutOfRange, match="1 to 32"):
        pack(np.array([0]), 33)
