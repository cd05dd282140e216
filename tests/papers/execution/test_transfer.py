"""CloudMatrix384's guesses: expected tokens, and where they end."""

import numpy as np
import pytest
from guesses import expected_tokens
from hypothesis import given
from hypothesis import strategies as st

from orrery.execution.speculation import (
    Speculation,
    verified_tokens,
)


@given(acceptance=st.floats(0.0, 0.999), drafted=st.integers(1, 16))
def test_guesses_in_a_row_follow_the_geometric_sum(acceptance, drafted):
    found = expected_tokens(Speculation(acceptance_frac=acceptance, draft_tokens=drafted))
    assert found == pytest.approx((1 - acceptance ** (drafted + 1)) / (1 - acceptance))


def test_acceptances_drawn_by_chance_agree():
    tree = Speculation(kind="tree", tree_widths=(3, 2), acceptance_frac=0.5)
    rng = np.random.default_rng(1)
    first = (rng.random((100_000, 3)) < 0.5).any(axis=1)
    second = first & (rng.random((100_000, 2)) < 0.5).any(axis=1)
    assert expected_tokens(tree) == pytest.approx(1 + first.mean() + second.mean(), abs=0.01)
    assert verified_tokens(tree) == 1 + 3 + 6
    assert verified_tokens(Speculation(draft_tokens=5)) == 6


def test_sure_guesses_and_trees_of_one_are_rows():
    assert expected_tokens(Speculation(acceptance_frac=1.0, draft_tokens=4)) == 5.0
    row, tree = Speculation(draft_tokens=3), Speculation(kind="tree", tree_widths=(1, 1, 1))
    assert expected_tokens(row) == expected_tokens(tree)
