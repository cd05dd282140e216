"""Draft trees of two levels, worked out by hand."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.execution import draft_trees
from orrery.execution.draft_head import DraftHead
from orrery.execution.draft_trees import best_of, checked_ranks, ranked, ratios, tree_heads, widened


def test_shares_by_rank():
    """A first guess right six times of ten; the second as often where it is wrong."""
    first, second = ranked([0.6, 0.5])
    assert first[:3] == pytest.approx((0.6, 0.24, 0.096))
    assert second[:3] == (0.5, 0.25, 0.125)
    assert len(first) == 8
    assert checked_ranks(((0.5, 0.5), (1.0,), (0.0,))) == ((0.5, 0.5), (1.0,), (0.0,))
    for wrong in ((), (-0.1,), (0.6, 0.5), (0.1, 0.2)):
        with pytest.raises(ScenarioError, match="position 2"):
            checked_ranks(((0.5,), wrong))


def test_full_trees_and_the_likeliest():
    guesses = ((0.6, 0.3), (0.5, 0.2))
    wide = widened(guesses, [2, 1])
    assert (wide.level_nodes, wide.acceptance_fracs) == ((2, 2), (pytest.approx(0.9), 0.5))
    assert widened(guesses, [1, 2]).level_nodes == (1, 2)
    assert ratios((0.9, 0.45)) == (0.9, 0.5)
    assert ratios((0.0, 0.0)) == (0.0, 0.0)
    found = {h.level_nodes: h.acceptance_fracs for h in tree_heads(guesses)}
    assert found[(1,)] == (0.6,)
    assert found[(2,)] == (pytest.approx(0.9),)
    # of two: 0.6 and then 0.3, either the second first guess or the first second one
    assert found[(2, 1)] == (pytest.approx(0.9), pytest.approx(1 / 3))
    assert found[(2, 2)] == (pytest.approx(0.9), pytest.approx(0.5))  # 0.3 and 0.15 of 0.9
    assert draft_trees.SIZES == (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def test_the_most_tokens_a_second_and_of_equal_ones_the_fewest_drafts():
    def tried(ratio, nodes):
        head = DraftHead(method="tree", level_nodes=(nodes,), acceptance_fracs=(0.5,))
        return draft_trees.Tried(head=head, step_s=1.0, speedup_ratio=ratio)

    ways = [tried(1.5, 8), tried(1.6, 9), tried(1.6, 4)]
    assert best_of(ways) is ways[2]
