"""A synthetic classification set that no plane can cut: every class is several clusters, scattered among the others'.

Cluster centres are normal in a few latent dimensions; points scatter around them, and a random matrix carries them
into the input space, where a little noise is added. Everything follows from the seed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.engine.streams import stream

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CENTRE_SPREAD, INPUT_NOISE = 2.5, 0.3
"""Spread of cluster centers, where a cluster's own is one, and noise on every input: classes overlap a little."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Points, one a row (points, dimensions), and their classes."""

    rows: Floats
    labels: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """Splits for training, for early stopping, and for the report."""

    train: Split
    validation: Split
    test: Split
    num_classes: int


def clusters(
    *,
    num_classes: int = 4,
    per_class: int = 4,
    num_latent: int = 5,
    num_inputs: int = 24,
    count: int = 1600,
    seed: int = 0,
) -> Dataset:
    """``count`` points to train on, a quarter as many each to validate and to test."""
    draw = stream(seed, "small/clusters")
    centres = CENTRE_SPREAD * draw.standard_normal((num_classes * per_class, num_latent))
    mixing = draw.standard_normal((num_latent, num_inputs)) / np.sqrt(num_latent)
    sizes = (count, count // 4, count // 4)
    which = draw.integers(0, len(centres), sum(sizes))
    latent = centres[which] + draw.standard_normal((sum(sizes), num_latent))
    inputs = latent @ mixing + INPUT_NOISE * draw.standard_normal((sum(sizes), num_inputs))
    inputs = (inputs - inputs[:count].mean(axis=0)) / inputs[:count].std(axis=0)
    ends = np.cumsum(sizes)[:-1].tolist()
    parts = zip(np.split(inputs, ends), np.split(which % num_classes, ends), strict=True)
    train, validation, test = (Split(rows=x, labels=y) for x, y in parts)
    return Dataset(train=train, validation=validation, test=test, num_classes=num_classes)
