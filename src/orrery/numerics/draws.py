"""Seeded tensors that look like those of networks: weights, activations, and activations with outliers.

A few channels of a large model's activations are tens of times larger than the others, in every token (Dettmers et al.
2022, LLM.int8(), section 4: from 6.7 billion parameters on, some 0.1 % of the features, up to 20 times and more).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange, UnknownName

Float32s = NDArray[np.float32]

SHARED_FRAC = 0.5
"""Share of a channel's variance that comes from factors that channels have in common."""

CHANNELS_PER_FACTOR = 8

OUTLIER_CHANNELS_FRAC = 0.01
OUTLIER_RATIO = (10.0, 60.0)
STUDENT_FREEDOM = 5.0
ROWS = 4096
"""Rows of a tensor that nobody gives a shape."""


def _normal(shape: tuple[int, ...], rng: np.random.Generator) -> Float32s:
    return rng.standard_normal(shape, dtype=np.float32)


def _student_t(shape: tuple[int, ...], rng: np.random.Generator) -> Float32s:
    return rng.standard_t(STUDENT_FREEDOM, size=shape).astype(np.float32)


def _laplace(shape: tuple[int, ...], rng: np.random.Generator) -> Float32s:
    return rng.laplace(size=shape).astype(np.float32)


def _uniform(shape: tuple[int, ...], rng: np.random.Generator) -> Float32s:
    return rng.uniform(-1.0, 1.0, size=shape).astype(np.float32)


def _outliers(shape: tuple[int, ...], rng: np.random.Generator) -> Float32s:
    gain = _gains(shape[-1], rng)
    return _normal(shape, rng) * gain.astype(np.float32)


def _gains(channels: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Sizes of channels: most alike, a few outliers."""
    gain = np.exp(0.3 * rng.standard_normal(channels))
    count = max(1, round(OUTLIER_CHANNELS_FRAC * channels))
    gain[rng.choice(channels, count, replace=False)] *= rng.uniform(*OUTLIER_RATIO, size=count)
    return gain


def correlated(rows: int, channels: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Standard normal channels that share factors, so that rounding errors of one can be made up for by others."""
    num_factors = max(1, channels // CHANNELS_PER_FACTOR)
    loads = rng.standard_normal((num_factors, channels)) * np.sqrt(SHARED_FRAC / num_factors)
    own = rng.standard_normal((rows, channels)) * np.sqrt(1 - SHARED_FRAC)
    return rng.standard_normal((rows, num_factors)) @ loads + own


def _activations(shape: tuple[int, ...], rng: np.random.Generator) -> Float32s:
    """Correlated channels of which some are outliers, in every token."""
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    return (correlated(rows, shape[-1], rng) * _gains(shape[-1], rng)).reshape(shape).astype(np.float32)


def _weights(shape: tuple[int, ...], rng: np.random.Generator) -> Float32s:
    """Normal, each row with a size of its own, 1 / sqrt(inputs) on average."""
    rows = np.exp(0.25 * rng.standard_normal((*shape[:-1], 1))) / np.sqrt(shape[-1])
    return _normal(shape, rng) * rows.astype(np.float32)


DISTRIBUTIONS: dict[str, tuple[str, Callable[[tuple[int, ...], np.random.Generator], Float32s]]] = {
    "normal": ("standard normal", _normal),
    "student_t": (f"Student's t with {STUDENT_FREEDOM:g} degrees of freedom: heavy tails", _student_t),
    "laplace": ("Laplace: a sharp peak and moderate tails", _laplace),
    "uniform": ("uniform from -1 to 1", _uniform),
    "weights": ("normal weights, rows of different sizes", _weights),
    "activations": ("activations: correlated channels, 1 % of them 10 to 60 times as large", _activations),
    "outliers": ("independent channels, 1 % of them 10 to 60 times as large", _outliers),
}
"""Name -> what it is like, and how it is drawn."""


def draw(name: str, shape: tuple[int, ...] = (ROWS, 1024), seed: int = 0) -> Float32s:
    """A tensor of ``shape`` from the distribution called ``name``; the same for the same seed."""
    if name not in DISTRIBUTIONS:
        raise UnknownName("distribution", name, DISTRIBUTIONS)
    if not shape or min(shape) < 1:
        raise OutOfRange(f"A tensor's shape has one or more sizes of 1 or more; got {shape}.")
    return DISTRIBUTIONS[name][1](shape, np.random.default_rng(seed))
