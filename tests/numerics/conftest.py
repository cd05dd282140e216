"""Layers to try recipes on, drawn by seed."""

import numpy as np
import pytest

from orrery.numerics.recipes.layer import Layer


def drawn(seed=0, out=24, width=64, tokens=160, *, outliers=3, spread=0.0):
    """Correlated activations with a mean, some of their channels twenty times as large, or all of different sizes."""
    rng = np.random.default_rng(seed)
    mix = rng.standard_normal((width, width)) / np.sqrt(width)
    x = rng.standard_normal((2 * tokens, width)) @ mix + 0.3 * rng.standard_normal((2 * tokens, width)) + 0.2
    x[:, rng.choice(width, outliers, replace=False)] *= 20
    x *= np.exp(spread * rng.standard_normal(width))
    previous = rng.standard_normal((width, 16)) * np.exp(rng.standard_normal((width, 1)))
    x, weights, previous = (a.astype(np.float32) for a in (x, 0.02 * rng.standard_t(5, (out, width)), previous))
    return Layer(
        weights=weights,
        inputs=x[:tokens],
        held_out=x[tokens:],
        bias=weights[:, 0],
        previous_weights=previous,
        previous_bias=previous[:, 0],
    )


@pytest.fixture(scope="session")
def layer():
    """What draws a layer."""
    return drawn
