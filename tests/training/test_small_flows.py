"""Flows of a mixture of Gaussians: values by hand, and the whole flow as the sum of the clusters' flows."""

import numpy as np
import pytest

from orrery.training.small.flows import Mixture, mixture, routed, train_flow, train_router


def test_one_gaussian_by_hand():
    """Mean 3, deviation 0.5. All noise: 3 - x. All data: x. Halfway at x = 2: variance (1 + 1/4) / 4, pull
    (1/8 - 1/2) / (5/16) = -6/5, so 3 - 6/5 (2 - 3/2) = 2.4.
    """
    of = Mixture(means=np.array([[3.0]]), spread_ratio=0.5, cluster=np.zeros(1, dtype=np.int64))
    found = of.flow(np.array([[1.0], [1.7], [2.0]]), np.array([[0.0], [1.0], [0.5]]))
    assert found.ravel() == pytest.approx([2.0, 1.7, 2.4])


def test_two_gaussians_by_hand():
    """Means -1 and 1 without noise left: at x = 0.5 with deviation 1, chances are 1 to e, and both flows are x.

    Halfway, x = 0: both are as likely, with flows 1 and -1 turned by the same pull of 0.
    """
    of = Mixture(means=np.array([[-1.0], [1.0]]), spread_ratio=1.0, cluster=np.array([0, 1]))
    x, t = np.array([[0.5], [0.0]]), np.array([[1.0], [0.5]])
    assert of.cluster_chances(x, t)[0] == pytest.approx([1.0 / (1.0 + np.e), np.e / (1.0 + np.e)])
    assert of.flow(x, t).ravel() == pytest.approx([0.5, 0.0])
    assert of.flow(x, t, cluster=1).ravel() == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize("near", [True, False])
def test_the_whole_flow_is_the_sum_of_the_clusters(near):
    of = mixture(12, 3, 0.4, 5, 0, near)
    x, t, _, _ = of.draw(np.random.default_rng(0), 50)
    parts = np.stack([of.flow(x, t, cluster=k) for k in range(5)], axis=1)
    assert (of.cluster_chances(x, t)[:, :, None] * parts).sum(axis=1) == pytest.approx(of.flow(x, t))
    assert sorted(np.bincount(of.cluster)) == [2, 2, 2, 3, 3]


def test_the_exact_flow_is_the_mean_of_what_networks_are_trained_towards():
    of = Mixture(means=np.array([[-2.0], [2.0]]), spread_ratio=0.5, cluster=np.array([0, 1]))
    x, t, target, _ = of.draw(np.random.default_rng(1), 20_000)
    error = target - of.flow(x, t)
    assert abs(error.mean()) < 0.03
    assert abs((error * x).mean()) < 0.05


def test_a_router_learns_the_chances():
    of = mixture(4, 2, 0.3, 2, 3, near=True)
    x, t, _, _ = of.draw(np.random.default_rng(2), 1000)
    exact = of.cluster_chances(x, t)
    errors = [np.abs(routed(train_router(of, 16, 64, steps, 0), x, t) - exact).mean() for steps in (1, 400)]
    assert errors[1] < 0.3 * errors[0]


def test_one_cluster_is_the_whole():
    of = mixture(4, 2, 0.3, 1, 3, near=True)
    whole, only = (train_flow(of, cluster, 8, 16, 5, 0) for cluster in (None, 0))
    assert all((a.weights == b.weights).all() for a, b in zip(whole, only, strict=True))
