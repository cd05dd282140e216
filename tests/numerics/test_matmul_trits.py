"""Ternary codes come out of their bytes as they went in, and take no more room than 1.6 bits each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.numerics.arithmetic.trits import pack_trits, unpack_trits


@given(st.lists(st.integers(0, 2), max_size=40))
def test_five_trits_fill_a_byte(values):
    codes = np.array(values, dtype=np.int64)
    packed = pack_trits(codes)
    assert len(packed) == -(-len(codes) // 5)
    np.testing.assert_array_equal(unpack_trits(packed, len(codes)), codes)


def test_every_byte_is_one_of_243():
    every = (np.arange(243)[:, None] // 3 ** np.arange(5)) % 3
    assert pack_trits(every.ravel()).tolist() == list(range(243))


def test_other_codes_and_too_many_are_refused():
    with pytest.raises(ScenarioError, match="write 0, 1 and 2"):
        pack_trits(np.array([3]))
    with pytest.raises(ScenarioError, match="need 2 bytes; got 1"):
        unpack_trits(np.array([5], dtype=np.uint8), 6)
