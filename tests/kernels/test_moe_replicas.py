"""Redundant experts by hand: who gets copies, where they go, and what that does to the fullest rank."""

from itertools import pairwise

import numpy as np
import pytest

from orrery.kernels.moe.replicas import copies_of, placed, spread_over
from orrery.kernels.moe.rule import loads
from orrery.kernels.ops import MoE, Popularity

SHAPE = {"hidden_size": 4096, "ffn_size": 1536, "format": "bf16"}


def test_copies_go_to_the_fullest_by_hand():
    """Shares 8 : 4 : 2 : 1. First copy: 8 becomes 4 + 4. Second: of 4, 4 (first in order) the expert 0 again: 8/3.
    Third: expert 1 with 4 becomes 2 + 2."""
    share = np.array([8.0, 4.0, 2.0, 1.0])
    assert copies_of(share, 1).tolist() == [2, 1, 1, 1]
    assert copies_of(share, 2).tolist() == [3, 1, 1, 1]
    assert copies_of(share, 3).tolist() == [3, 2, 1, 1]


def test_places_by_hand():
    """6 : 3 : 2 : 1 with copies 2, 1, 1, 2 (loads 3, 3, 3, 2, 0.5, 0.5) on two ranks of three places: 3 | 3, then 3
    on the first, 2 on the second, 0.5 on the second (5 < 6), which is full; the last goes to the first: 6.5 | 5.5."""
    places = placed(np.array([6.0, 3.0, 2.0, 1.0]), np.array([2, 1, 1, 2]), 2)
    first, second = places.reshape(2, 3).tolist()
    assert sorted(first) == [0, 1, 3]
    assert sorted(second) == [0, 2, 3]


def test_tokens_go_round_copies():
    """Seven tokens over three copies: 3, 2, 2, and in the next draw another copy is first."""
    places = np.array([0, 1, 0, 0])
    held = spread_over(np.array([[7.0, 5.0], [7.0, 5.0]]), places)
    assert held[:, 1].tolist() == [5.0, 5.0]
    assert [sorted(row[[0, 2, 3]]) for row in held] == [[2.0, 2.0, 3.0]] * 2
    assert held[0, [0, 2, 3]].tolist() != held[1, [0, 2, 3]].tolist()


def test_the_copy_whose_turn_is_first_moves_on_by_one_a_draw():
    """Two copies of an expert with 3 tokens, three of one with 4: 2 1 | 2 1 1, then 1 2 | 1 1 2, then 2 1 | 1 2 1."""
    held = spread_over(np.array([[3.0, 4.0]] * 3), np.array([0, 0, 1, 1, 1]))
    assert held.tolist() == [[2, 1, 2, 1, 1], [1, 2, 1, 1, 2], [2, 1, 1, 2, 1]]


def test_copies_of_one_hot_expert_even_out_two_ranks():
    """Expert 0 is chosen by every token, three others by a third each. Two ranks hold two experts each: the fullest
    gets T + T/3. With two copies (three places a rank): T/2 and half of the rest on each rank, T in all."""
    law = Popularity(shares=(0.75, 1 / 12, 1 / 12, 1 / 12))
    tokens = 3 * 4096
    ask = {"tokens": tokens, "num_experts": 4, "experts_per_token": 2, "ep": 2, "popularity": law, **SHAPE}
    assert loads(MoE(**ask))[0] == pytest.approx(tokens * 4 / 3, rel=0.02)
    assert loads(MoE(**ask, num_redundant_experts=2))[0] == pytest.approx(tokens, rel=0.02)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5])
def test_more_copies_never_load_the_fullest_rank_more(exponent):
    rows = [
        loads(
            MoE(
                tokens=8192,
                num_experts=256,
                experts_per_token=8,
                ep=32,
                num_redundant_experts=count,
                popularity=Popularity(exponent=exponent),
                **SHAPE,
            )
        )[0]
        for count in (0, 32, 64, 128, 256)
    ]
    assert all(b <= a * 1.01 for a, b in pairwise(rows))
    assert rows[1] < rows[0]
    assert rows[-1] >= 8192 * 8 / 32


def test_equal_loads_gain_nothing():
    """Dealt out evenly nothing changes; chosen at random, all alike, the fullest rank stays within its own noise, and
    every rank reads more experts than it holds of its own."""
    ask = {"tokens": 8192, "num_experts": 256, "experts_per_token": 8, "ep": 32, **SHAPE}
    dealt = Popularity(is_dealt=True)
    one, more = (loads(MoE(**ask, popularity=dealt, num_redundant_experts=n)) for n in (0, 32))
    assert one == more
    alone, copied = (loads(MoE(**ask, popularity=Popularity(), num_redundant_experts=n)) for n in (0, 32))
    assert copied[0] == pytest.approx(alone[0], rel=0.02)
    assert (alone[1], copied[1]) == (8.0, 9.0)


def test_arrays_say_what_numbers_say():
    ask = {
        "num_experts": 64,
        "experts_per_token": 4,
        "ep": 8,
        "popularity": Popularity(exponent=1.0),
        "num_redundant_experts": 8,
        **SHAPE,
    }
    together = loads(MoE(tokens=np.array([3, 50, 4000]), **ask))
    for i, tokens in enumerate((3, 50, 4000)):
        assert loads(MoE(tokens=tokens, **ask))[0] == pytest.approx(together[0][i], rel=1e-12)
