"""Trees through a recurrent layer: one pass says what every branch alone says."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.kernels.recurrent.tree import ancestors, branch_outputs, full_tree, tree_outputs


def drawn(count, seed=0):
    d = np.random.default_rng(seed)
    return (
        d.standard_normal((5, 3)),
        d.uniform(0.3, 1.0, count),
        d.standard_normal((count, 5)),
        d.standard_normal((count, 5)),
        d.standard_normal((count, 3)),
    )


@pytest.mark.parametrize("parents", [(-1, 0, 1, 2), (-1, 0, 0, 1, 1, 2), (-1, -1, 0, 1, 3, 0), full_tree((3, 2, 2))])
def test_one_pass_says_what_branches_say(parents):
    given = drawn(len(parents))
    assert tree_outputs(parents, *given) == pytest.approx(branch_outputs(parents, *given))


def test_a_sibling_changes_nothing():
    given = drawn(4)
    other = [*given]
    other[4] = other[4].copy()
    other[4][1] += 9.0  # a node beside, not above
    assert tree_outputs((-1, 0, 0, 2), *other)[[0, 2, 3]] == pytest.approx(
        tree_outputs((-1, 0, 0, 2), *given)[[0, 2, 3]]
    )


def test_ancestors_are_paths():
    assert ancestors((-1, 0, 0, 2)).sum(axis=1).tolist() == [1, 2, 2, 3]
    with pytest.raises(ScenarioError, match="stands before"):
        ancestors((1, -1))


def test_full_trees_have_all_their_nodes():
    assert len(full_tree((3, 2, 2))) == 1 + 3 + 6 + 12
    assert full_tree((2, 1)) == (-1, 0, 0, 1, 2)
