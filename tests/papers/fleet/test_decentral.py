"""Electing a leader on a ring, counted and simulated."""

import pytest

from orrery.engine.streams import stream
from orrery_papers.node_averaged_complexity.ring_election import rounds


def test_a_node_looks_until_it_sees_a_larger_number_or_all():
    numbers = stream(0, "ring/numbers").permutation(16)

    def looks(i):
        seen = (r for r in range(1, 9) if max(numbers[(i + r) % 16], numbers[i - r]) > numbers[i])
        return next(seen, 8)

    assert rounds(16).tolist() == [looks(i) for i in range(16)]


def test_the_ordinary_node_knows_after_half_the_logarithm_of_the_ring():
    means = [rounds(n).mean() for n in (256, 4096, 65536)]
    expected = [sum(1.0 / (2 * r + 1) for r in range(n // 2)) for n in (256, 4096, 65536)]
    assert means == pytest.approx(expected, rel=0.15)
