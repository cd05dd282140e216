"""ExFlow's affinity of experts: the routes that stay on their device."""

import pytest

from orrery.execution.experts.affinity import Affinity, transitions
from orrery.execution.experts.placement import distances, hops, in_order, near_followed
from orrery_papers.exflow.affinity import followed_frac_of

EVEN = Affinity(num_experts=16, num_layers=6, followed_frac=0.6)


def test_single_favourites_are_placed_together():
    """What is left crosses as if by chance: (1 - followed) (n - 1) / n."""
    moves = transitions(EVEN)
    placed = near_followed(moves, distances(4, 4))
    device, _ = hops(moves, placed, 4)
    assert device == pytest.approx(0.4 * 3 / 4, rel=1e-6)
    assert followed_frac_of(device, 4) == pytest.approx(0.6)
    assert hops(moves, in_order(6, 16, 4), 4)[0] == pytest.approx(0.75, abs=0.12)
