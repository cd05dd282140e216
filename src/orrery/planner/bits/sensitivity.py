"""How much a format perturbs a layer: the relative squared error that rounding to it makes, measured on numbers.

    |W - Q(W)|^2 / |W|^2     of weights, and the same of activations where the format narrows them too

A product's relative squared error is the sum of the two to first order, since the errors are independent. Weights are
drawn from a normal distribution and activations from one with outliers where nobody brings the real ones.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.device import Device
from orrery.numerics.draws import draw
from orrery.numerics.quantise import round_trip
from orrery.numerics.registry import get_format
from orrery.planner.bits.options import arithmetic

SHAPE = (256, 4096)
"""Shape of the drawn weights and activations: channels or tokens, and the features that products contract."""


def drawn_errors(formats: Sequence[str], device: Device, seed: int, *, is_fabric: bool = False) -> Mapping[str, float]:
    """Relative squared error of a product in each format, on drawn numbers; a fabric multiplies any as it is."""
    weights, activations = draw("normal", SHAPE, seed), draw("outliers", SHAPE, seed + 1)
    found: dict[str, float] = {}
    for name in formats:
        keeps_wide = not is_fabric and get_format(arithmetic(name, device)).weight_only
        narrowed = 0.0 if keeps_wide else relative_error(activations, name)
        found[name] = relative_error(weights, name) + narrowed
    return found


def relative_error(values: NDArray[np.float32], format: str) -> float:
    """|x - Q(x)|^2 / |x|^2; 0 for a tensor of zeros."""
    exact = values.astype(np.float64)
    squares = float(np.sum(exact**2))
    return float(np.sum((exact - round_trip(values, format)) ** 2)) / squares if squares else 0.0
