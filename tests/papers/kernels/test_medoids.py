"""Swaps of medoids against every pair tried by hand, and the work that is counted."""

import numpy as np
import pytest

from orrery_papers.fasterpam.medoids import best_swaps, built, eager_swaps, loss


def drawn(count=40, seed=3):
    at = np.random.default_rng(seed).normal(size=(count, 2))
    return np.linalg.norm(at[:, None] - at, axis=2)


def tried_by_hand(distances, first):
    """The original: each pair of medoid and candidate on its own, the best of them, until none pays."""
    medoids, looks = list(first), 0
    while True:
        looks += 1
        tried = [
            (loss(distances, [*medoids[:i], c, *medoids[i + 1 :]]), i, c)
            for c in range(len(distances))
            if c not in medoids
            for i in range(len(medoids))
        ]
        best, place, candidate = min(tried)
        if best >= loss(distances, medoids) - 1e-9:
            return sorted(medoids), looks
        medoids[place] = candidate


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("count", [2, 5])
def test_the_best_swaps_are_those_of_the_original(seed, count):
    distances = drawn(seed=seed)
    first = list(range(count))
    found = best_swaps(distances, first)
    medoids, looks = tried_by_hand(distances, first)
    assert list(found.medoids) == medoids
    assert found.num_iterations == looks == found.num_swaps + 1
    assert loss(distances, found.medoids) < loss(distances, first)


def test_eager_swaps_end_where_no_swap_pays():
    distances = drawn()
    found = eager_swaps(distances, [0, 1, 2, 3])
    medoids, looks = tried_by_hand(distances, found.medoids)
    assert looks == 1
    assert tuple(medoids) == found.medoids


def test_evaluations_differ_by_the_number_of_medoids():
    found = best_swaps(drawn(), [0, 1, 2, 3])
    assert found.num_candidates == found.num_iterations * 36
    assert found.num_evaluations(40, is_shared=True) == found.num_candidates * 40
    assert found.num_evaluations(40, is_shared=False) == 4 * found.num_candidates * 40


def test_the_first_medoid_built_is_the_most_central_point():
    distances = drawn()
    assert built(distances, 1) == [int(distances.sum(axis=1).argmin())]
    losses = [loss(distances, built(distances, count)) for count in (1, 3, 6)]
    assert losses == sorted(losses, reverse=True)
