"""NUPES's products of powers, worked out by hand."""

import numpy as np
import pytest

from orrery_papers.nupes.exponent import product_table, round_trip_error


def test_what_a_round_trip_loses_and_products_of_codes():
    """Four bits, a root: of 8, 2, -8 and 0.5 the codes are 7, 4, -7 and 2. Products up to 7 x 7, square, in eighths."""
    want = (2 - 8 * 16 / 49) ** 2 + (0.5 - 8 * 4 / 49) ** 2
    assert round_trip_error(np.array([8.0, 2.0, -8.0, 0.5]), 4, 0.5) == pytest.approx(want)
    table = product_table(4, 0.5, 3)
    assert len(table) == 50
    assert [table[i] for i in (0, 7, 25, 49)] == [0, 0, round(8 * (25 / 49) ** 2), 8]
