"""Flow matching on a mixture of Gaussians, whose exact flow is known: one network, or experts that a router mixes.

A point lies at x = (1 - t) noise + t data, and a flow is the mean of data - noise at x and t. [lipman-2023] For a
component with mean m and standard deviation s that is m + (t s^2 - (1 - t)) / ((1 - t)^2 + t^2 s^2) (x - t m), and the
flow of several is their mean, weighted by how likely x is of each. The same sum over clusters of components makes the
whole flow of the experts' flows, so each can be trained on its own cluster alone. [mcallister-2025]
"""

from dataclasses import dataclass

import numpy as np

from orrery.engine.streams import stream
from orrery.training.small.backpropagation import activations, backward
from orrery.training.small.data import Floats, Ints
from orrery.training.small.learning import Adam
from orrery.training.small.network import Layer, cross_entropy, layers

LEARNING_RATE = 3e-3
FREQUENCIES = np.pi * np.array([0.5, 1.0, 2.0])
"""Frequencies of the sines and cosines by which networks see the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Equally likely Gaussians: means (components, features), one standard deviation, and the cluster of each."""

    means: Floats
    spread_ratio: float  # standard deviation of a component, that of the noise being 1
    cluster: Ints

    @property
    def num_clusters(self) -> int:
        """How many clusters its components are cut into."""
        return int(self.cluster.max()) + 1

    def draw(
        self, rng: np.random.Generator, num_points: int, cluster: int | None = None
    ) -> tuple[Floats, Floats, Floats, Ints]:
        """Noisy points (points, features), times (points, 1), data - noise, and clusters: of all, or of one cluster."""
        among = np.arange(len(self.means)) if cluster is None else np.flatnonzero(self.cluster == cluster)
        component = rng.choice(among, num_points)
        noise = rng.standard_normal((num_points, self.means.shape[1]))
        data = self.means[component] + self.spread_ratio * rng.standard_normal(noise.shape)
        t = rng.random((num_points, 1))
        return (1.0 - t) * noise + t * data, t, data - noise, self.cluster[component]

    def chances(self, x: Floats, t: Floats) -> Floats:
        """Chances of each component, given the noisy points: (points, components)."""
        variance = (1.0 - t) ** 2 + (t * self.spread_ratio) ** 2
        away = ((x[:, None, :] - t[:, :, None] * self.means) ** 2).sum(axis=2)
        weights = np.exp(-(away - away.min(axis=1, keepdims=True)) / (2.0 * variance))
        return weights / weights.sum(axis=1, keepdims=True)

    def cluster_chances(self, x: Floats, t: Floats) -> Floats:
        """Chances of each cluster, given the noisy points: (points, clusters)."""
        return self.chances(x, t) @ np.eye(self.num_clusters)[self.cluster]

    def flow(self, x: Floats, t: Floats, cluster: int | None = None) -> Floats:
        """The exact flow at noisy points, of all components or of one cluster: (points, features)."""
        pull = (t * self.spread_ratio**2 - (1.0 - t)) / ((1.0 - t) ** 2 + (t * self.spread_ratio) ** 2)
        each = self.means + pull[:, :, None] * (x[:, None, :] - t[:, :, None] * self.means)
        chances = self.chances(x, t) * (True if cluster is None else self.cluster == cluster)
        total = chances.sum(axis=1, keepdims=True)
        return ((chances / np.where(total > 0.0, total, 1.0))[:, :, None] * each).sum(axis=1)


def mixture(
    num_components: int, num_features: int, spread_ratio: float, num_clusters: int, seed: int, near: bool
) -> Mixture:
    """Means drawn with a standard deviation of 2, in equal clusters: of neighbours along the direction in which means
    spread most, or dealt out in the order in which they were drawn.
    """
    means = 2.0 * stream(seed, "small/flows").standard_normal((num_components, num_features))
    centred = means - means.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    cluster = np.empty(num_components, dtype=np.int64)
    order = np.argsort(along, kind="stable") if near else np.arange(num_components)
    for k, part in enumerate(np.array_split(order, num_clusters)):
        cluster[part] = k
    return Mixture(means=means, spread_ratio=spread_ratio, cluster=cluster)


def seen(x: Floats, t: Floats) -> Floats:
    """Inputs of the network: noisy points, and sines and cosines of their times."""
    return np.hstack([x, np.sin(t * FREQUENCIES), np.cos(t * FREQUENCIES)])


def train_flow(
    of: Mixture, cluster: int | None, hidden: int, num_points: int, num_steps: int, seed: int
) -> list[Layer]:
    """A network trained towards data - noise of the whole mixture, or of one cluster, ``num_points`` a step."""
    features = of.means.shape[1]
    network = _network(features, hidden, features, seed, f"flow/{cluster or 0}")
    adam, rng = _adam(network), stream(seed, f"small/flow/points/{cluster or 0}")
    for step in range(num_steps):
        x, t, target, _ = of.draw(rng, num_points, cluster)
        saved = activations(network, seen(x, t))
        adam.learning_rate = LEARNING_RATE * (1.0 - step / num_steps)
        adam.step(backward(network, saved, 2.0 * (saved[-1] - target) / num_points))
    return network


def train_router(of: Mixture, hidden: int, num_points: int, num_steps: int, seed: int) -> list[Layer]:
    """A network that tells from noisy points which cluster they are of."""
    network = _network(of.means.shape[1], hidden, of.num_clusters, seed, "router")
    adam, rng = _adam(network), stream(seed, "small/flow/router/points")
    for step in range(num_steps):
        x, t, _, cluster = of.draw(rng, num_points)
        saved = activations(network, seen(x, t))
        adam.learning_rate = LEARNING_RATE * (1.0 - step / num_steps)
        adam.step(backward(network, saved, cross_entropy(saved[-1], cluster)[1]))
    return network


def routed(network: list[Layer], x: Floats, t: Floats) -> Floats:
    """The router's chances of each cluster: (points, clusters)."""
    logits = activations(network, seen(x, t))[-1]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _network(features: int, hidden: int, outputs: int, seed: int, name: str) -> list[Layer]:
    return layers((features + 2 * FREQUENCIES.size, hidden, hidden, outputs), seed, name)


def _adam(network: list[Layer]) -> Adam:
    return Adam([array for layer in network for array in layer], LEARNING_RATE)
