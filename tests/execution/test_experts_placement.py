"""Routes through experts, and placements: shares add up, favourites end up together, loads even out."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.experts.affinity import Affinity, loads, transitions
from orrery.execution.experts.placement import balanced, distances, fullest, hops, in_order, near_followed

EVEN = Affinity(num_experts=16, num_layers=6, followed_frac=0.6)


SKEWED = Affinity(num_experts=8, num_layers=5, followed_frac=0.3, num_followers=2, skew_ratio=0.8)


@pytest.mark.parametrize("affinity", [EVEN, SKEWED])
def test_all_tokens_go_somewhere(affinity):
    moves = transitions(affinity)
    assert moves.shape == (affinity.num_layers - 1, affinity.num_experts, affinity.num_experts)
    assert moves.sum(axis=(1, 2)) == pytest.approx(1.0)
    assert loads(moves).sum(axis=1) == pytest.approx(1.0)
    assert moves[1:].sum(axis=2) == pytest.approx(moves[:-1].sum(axis=1))


@pytest.mark.parametrize("place", [near_followed, balanced])
def test_every_device_holds_as_many_of_each_layer(place):
    placed = place(transitions(SKEWED), distances(4, 2))
    assert all((np.bincount(row, minlength=4) == 2).all() for row in placed)


def test_no_exchange_of_two_experts_makes_it_nearer():
    moves, distance = transitions(SKEWED), distances(4, 2)
    placed = near_followed(moves, distance)

    def cost(p):
        return sum(
            float((m * distance[a[:, None], b[None, :]]).sum()) for m, a, b in zip(moves, p, p[1:], strict=False)
        )

    best = cost(placed)
    for layer in range(len(placed)):
        for a in range(8):
            for b in range(a):
                other = placed.copy()
                other[layer, [a, b]] = other[layer, [b, a]]
                assert cost(other) >= best - 1e-9


def test_even_groups_take_load_off_the_busiest_and_still_come_nearer():
    moves = transitions(SKEWED)
    ordered, even = in_order(5, 8, 4), balanced(moves, distances(4, 2))
    assert fullest(moves, even) < fullest(moves, ordered)
    assert hops(moves, even, 2)[1] < hops(moves, ordered, 2)[1]


def test_ways_between_nodes_are_longer():
    assert distances(4, 2).tolist()[0] == [0.0, 1.0, 2.0, 2.0]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ScenarioError, match="divides"):
        in_order(2, 8, 3)
    with pytest.raises(ScenarioError, match="0 to 1"):
        Affinity(num_experts=4, num_layers=2, followed_frac=1.5)
    with pytest.raises(ScenarioError, match="its experts"):
        Affinity(num_experts=4, num_layers=2, num_followers=5)
