"""CloudMatrix384's guesses and networks of the papers' passes, worked out by hand."""

import numpy as np
import pytest
from guesses import expected_tokens

from orrery.execution.overlapped import Pass
from orrery.execution.speculation import (
    Speculation,
)
from orrery_papers.shared.passes import with_network

# --- guesses


def test_guesses_in_a_row():
    """1 + 0.5 + 0.25 + 0.125."""
    row = Speculation(draft_tokens=3, acceptance_frac=0.5, draft_base_s=2.0, draft_s_per_sequences=0.1)
    assert expected_tokens(row) == 1.875
    by_position = Speculation(draft_tokens=2, acceptance_fracs=(0.5, 0.25))
    assert expected_tokens(by_position) == 1.625


def test_trees_of_guesses():
    """4 x 2 x 1: a level holds with 1 - 0.5^4, 1 - 0.5^2 and 0.5."""
    tree = Speculation(
        kind="tree", tree_widths=(4, 2, 1), acceptance_frac=0.5, draft_base_s=2.0, draft_s_per_sequences=0.1
    )
    assert expected_tokens(tree) == 1 + 0.9375 + 0.9375 * 0.75 * 1.5


def test_searched_trees_say_their_levels():
    found = Speculation(level_fracs=(0.8, 0.5), checked_tokens=7)
    assert expected_tokens(found) == pytest.approx(1 + 0.8 + 0.4)


def test_a_pass_over_another_link():
    one = Pass(
        deployment=None,
        total_s=np.array([10.0]),
        network_s=np.array([4.0]),
        memory_s=np.array([1.0]),
        split_extra_s=np.array([0.5]),
        halves_network_extra_s=np.array([0.25]),
    )
    other = with_network(one, np.array([9.0]))
    assert (other.total_s, other.network_s, other.kernels_s) == (15, 9, 6)
