"""Telling platforms apart by the last bits of what they answer.

A batch of outputs becomes a few shares: how often each low bit of the significand is set and, where the exact
answer is known (white box: the model's weights are at hand), how its errors fall in units of the last place. A
nearest-centroid rule on standardised shares then names the platform. After Zhang et al. 2025, "Hardware and Software
Platform Inference", which trains a support vector machine on the bits of logits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Float32 = NDArray[np.float32]

NUM_LOW_BITS = 8
EDGES = (-8.5, -4.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 4.5, 8.5)
"""Between bins of errors, in units of the last place."""


def low_bits(outputs: Float32) -> Floats:
    """The share of outputs in which each of the lowest bits is set, lowest first: all that a black box shows."""
    bits = np.ascontiguousarray(outputs, dtype=np.float32).view(np.uint32).reshape(-1, 1)
    return ((bits >> np.arange(NUM_LOW_BITS, dtype=np.uint32)) & 1).mean(axis=0)


def errors(outputs: Float32, exact: Floats) -> Floats:
    """The share of outputs in each bin of error, signed towards zero or away, in units of the exact last place."""
    off = (outputs.astype(np.float64) - exact) * np.sign(exact) / np.spacing(np.abs(exact).astype(np.float32))
    counts = np.bincount(np.digitize(off.ravel(), EDGES), minlength=len(EDGES) + 1)
    return counts / off.size


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearestCentroid:
    """Names a platform by the nearest mean of its training points, in units of their spread within platforms."""

    names: tuple[str, ...]
    centroids_frac: Floats  # (platforms, features)
    spreads_frac: Floats  # (features,)

    def name(self, points: Floats) -> list[str]:
        """The platform of every point (points, features)."""
        distance = (((points[:, None] - self.centroids_frac[None]) / self.spreads_frac) ** 2).sum(axis=-1)
        return [self.names[i] for i in distance.argmin(axis=1)]


def train(points: dict[str, Floats]) -> NearestCentroid:
    """From points (points, features) of every platform; a feature that never varies gets a small spread of its own."""
    centroids = np.array([p.mean(axis=0) for p in points.values()])
    within = np.sqrt(np.mean([p.var(axis=0) for p in points.values()], axis=0))
    return NearestCentroid(names=tuple(points), centroids_frac=centroids, spreads_frac=np.maximum(within, 1e-3))


def accuracy_frac(classifier: NearestCentroid, points: dict[str, Floats]) -> float:
    """The share of points that get their own platform's name."""
    named = [(truth, guess) for truth, p in points.items() for guess in classifier.name(p)]
    return sum(truth == guess for truth, guess in named) / len(named)
