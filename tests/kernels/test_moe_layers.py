"""Loads where every layer has shares and a placement of its own: layers whose tokens have no choice, by hand."""

from math import ceil

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.kernels.moe._kernel import GRID_PER_OCTAVE, NUM_HEIGHTS
from orrery.kernels.moe.routing import layered_table, popular_table
from orrery.kernels.ops import Popularity

AB, AC, CD = (1.0, 1.0, 0.0, 0.0), (1.0, 0.0, 1.0, 0.0), (0.0, 0.0, 1.0, 1.0)
"""Two experts a token: every token goes to the two that have shares."""


def at(table, tokens):
    """The row of a power of two of tokens."""
    return table[round(np.log2(tokens) * GRID_PER_OCTAVE)].tolist()


def tiles(tokens, experts):
    """Tiles of 8, 16, … rows, of so many experts with that many tokens each (a mean over layers)."""
    return [experts * ceil(tokens / (8 * 2**i)) for i in range(NUM_HEIGHTS)]


@pytest.mark.parametrize("tokens", [1, 4, 32, 256])
def test_layers_count_alike(tokens):
    """Experts 0 and 1 on one rank: both of a token's there, one on each, both on the other; 2, 1 and 2 are 5 thirds."""
    row = at(layered_table(4, 2, 2, Popularity(layers=(AB, AC, CD))), tokens)
    assert row == pytest.approx([5 / 3 * tokens, 5 / 3, *tiles(tokens, 5 / 3)])


@pytest.mark.parametrize("tokens", [2, 64])
def test_experts_lie_where_ranks_say(tokens):
    """Experts 0 and 2 on the first rank: 1, 2 and 1; in the last layer 2 and 3 on the first: 1, 2 and 2."""
    ranks = ((0, 1, 0, 1), (0, 1, 0, 1), (0, 1, 0, 1))
    row = at(layered_table(4, 2, 2, Popularity(layers=(AB, AC, CD), ranks=ranks)), tokens)
    assert row == pytest.approx([4 / 3 * tokens, 4 / 3, *tiles(tokens, 4 / 3)])
    ranks = (*ranks[:2], (1, 1, 0, 0))
    row = at(layered_table(4, 2, 2, Popularity(layers=(AB, AC, CD), ranks=ranks)), tokens)
    assert row[:2] == pytest.approx([5 / 3 * tokens, 5 / 3])


def test_between_whole_tokens_rows_are_lines():
    """At 2^(j / grid) tokens, between 8 and 9 of two experts, tiles of 8 go from one to two each."""
    table = layered_table(4, 2, 2, Popularity(layers=(AB,)))
    step = 3 * GRID_PER_OCTAVE + 1
    tokens = 2.0 ** (step / GRID_PER_OCTAVE)
    assert table[step][0] == pytest.approx(2 * tokens)
    below = int(tokens)
    between = [2 * (ceil(n / 8)) for n in (below, below + 1)]
    assert table[step][2] == pytest.approx(between[0] + (tokens - below) * (between[1] - between[0]))


def test_a_lone_rank_holds_every_assignment_and_its_experts_in_expectation():
    """Shares 3 : 1 and 1 : 0: after two tokens 2 - 9/16 - 1/16 experts in the first layer, and one in the second."""
    table = layered_table(2, 1, 1, Popularity(layers=((3.0, 1.0), (1.0, 0.0))))
    assert at(table, 1)[:2] == pytest.approx([1, 1])
    assert at(table, 2)[:2] == pytest.approx([2, (2 - 9 / 16 - 1 / 16 + 1) / 2])


def test_copies_take_turns_in_their_own_layer():
    """One expert gets all: three copies are its own. Each of three ranks takes one of the four, and one rank the last.

    16 tokens are 4 a copy, so the fullest rank has 8.
    """
    table = layered_table(3, 1, 3, Popularity(layers=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))), 3)
    assert at(table, 16)[:2] == pytest.approx([8, 2])
    bare = layered_table(3, 1, 3, Popularity(layers=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))))
    assert at(bare, 16)[:2] == pytest.approx([16, 1])


def test_more_ranks_than_experts_are_as_many_as_experts():
    law = Popularity(layers=(AB, CD))
    assert np.array_equal(layered_table(4, 2, 16, law), layered_table(4, 2, 4, law))
    assert at(layered_table(4, 2, 16, law), 8)[:2] == pytest.approx([8, 1])


def test_every_layer_has_a_share_for_every_expert():
    with pytest.raises(OutOfRange, match="3 shares a layer for 4 experts"):
        layered_table(4, 2, 2, Popularity(layers=(AB, (1.0, 1.0, 1.0))))
    law = Popularity(layers=(AB, AC))
    assert np.array_equal(popular_table(4, 2, 2, law), layered_table(4, 2, 2, law))


def test_one_law_for_all_layers_with_copies():
    """The first of three experts gets all, with copies as above; without a chance every draw is alike."""
    law = Popularity(shares=(1.0, 0.0, 0.0))
    assert at(popular_table(3, 1, 3, law, 3), 16)[:2] == pytest.approx([8, 2])
    assert at(popular_table(3, 1, 3, law), 16)[:2] == pytest.approx([16, 1])
    assert at(popular_table(3, 1, 1, law), 16)[:2] == pytest.approx([16, 1])
