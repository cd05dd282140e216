"""How much wider an interval becomes on a device that was not measured than on its measured sibling."""

import numpy as np
import pytest

from fit.intervals import sibling_factor

OWN = np.exp(np.linspace(-0.1, 0.1, 101))  # 80 % lie within exp(0.08) of 1


def test_rows_that_scatter_as_far_need_no_more():
    assert sibling_factor([(OWN, OWN)]) == pytest.approx(1.0, abs=0.02)


def test_rows_that_scatter_twice_as_far_need_twice_the_width():
    assert sibling_factor([(OWN, OWN**2)]) == pytest.approx(2.0, abs=0.03)


def test_another_level_counts_as_well():
    """All of it a tenth slower: of -0.1 to 0.1, moved by 0.1, 80 % lie below 0.16, twice 0.08."""
    assert sibling_factor([(OWN, OWN * np.exp(0.1))]) == pytest.approx(2.0, abs=0.03)


def test_every_pair_weighs_the_same():
    """One that holds all of its rows leaves 60 % to the other: -0.12 to 0.12 of 0.2, 1.5 times 0.08."""
    calm = np.ones(1000)
    assert sibling_factor([(OWN, calm), (OWN, OWN**2)]) == pytest.approx(1.5, abs=0.03)


def test_nobody_to_compare_with():
    assert sibling_factor([]) == 1.5
