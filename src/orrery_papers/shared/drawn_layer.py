"""Linear layers in place of real ones: drawn weights, and drawn activations that are correlated as a network's are.

Half of the variance of the channels comes from factors that they share, an eighth as many as there are channels, so
that rounding errors of one channel can be made up for by others. Each channel then has the marginal distribution of
its place in the order of the tokens: a Gaussian copula. Outlier channels are larger by the same factor in all tokens.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.engine.streams import stream
from orrery.numerics.draws import CHANNELS_PER_FACTOR, correlated
from orrery.numerics.recipes.format_grid import grid
from orrery.numerics.recipes.layer import Layer, Scheme
from orrery.numerics.recipes.prepare import Recipe, measure, prepare

Floats = NDArray[np.float64]

OUTLIER_RATIO = 20.0
"""How much larger an outlier channel is (Dettmers et al. 2022, LLM.int8(), section 4: up to twenty times)."""


def drawn_layer(
    seed: int,
    *,
    width: int = 128,
    num_outputs: int = 64,
    num_tokens: int = 512,
    has_light_tails: bool = False,
    is_rectified: bool = False,
    num_outliers: int = 0,
    spread_ratio: float = 1.0,
) -> Layer:
    """A layer with as many tokens to calibrate on as to judge by; Laplace marginals unless the tails are to be light.

    ``is_rectified``: negative activations are zero, as after a ReLU. ``spread_ratio``: one standard deviation of the
    logarithm of the channels' sizes, which the rows of the weights before the layer share.
    """
    rng = stream(seed, "drawn layer")
    x = correlated(2 * num_tokens, width, rng)
    if not has_light_tails:
        x = _laplace_by_rank(x)
    sizes = np.exp(np.log(spread_ratio) * rng.standard_normal(width))
    sizes[rng.choice(width, num_outliers, replace=False)] *= OUTLIER_RATIO
    x *= sizes
    weights = (rng.standard_normal if has_light_tails else rng.laplace)(size=(num_outputs, width)) / np.sqrt(width)
    previous = rng.standard_normal((width, CHANNELS_PER_FACTOR)) * sizes[:, None]
    x = np.maximum(x, 0.0) if is_rectified else x
    x, weights, previous = (array.astype(np.float32) for array in (x, weights, previous))
    return Layer(weights=weights, inputs=x[:num_tokens], held_out=x[num_tokens:], previous_weights=previous)


def _laplace_by_rank(x: Floats) -> Floats:
    """Every channel's values replaced by quantiles of the Laplace distribution, in the same order."""
    place = (x.argsort(axis=0).argsort(axis=0) + 0.5) / len(x) - 0.5
    return -np.sign(place) * np.log1p(-2 * np.abs(place))


def mean_error(layers: Sequence[Layer], weights: str, activations: str, recipes: Sequence[Recipe]) -> float:
    """Relative error of the output, root mean square over layers; no format's name leaves a tensor as it is."""
    scheme = Scheme(weights=grid(weights) if weights else None, activations=grid(activations) if activations else None)
    found = [measure(prepare(layer, scheme, recipes, stream(0, "recipes")), layer) for layer in layers]
    return float(np.sqrt(np.mean([f.output_error_frac**2 for f in found])))
