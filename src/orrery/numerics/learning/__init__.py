"""Linear layers whose forward and backward products compute in simulated formats.

layer = linear("nvfp4-linear")
y, saved = layer.forward(x, w, rng)
dx, dw = layer.backward(saved, dy, rng)
"""

from typing import Any

from orrery.base.extension_points import ExtensionPoint
from orrery.numerics.learning import techniques
from orrery.numerics.learning.linear import Linear

__all__ = ["LAYERS", "Linear", "linear"]

LAYERS = ExtensionPoint(name="numerics.linear", folder=techniques, noun="linear layer")


def linear(name: str, **knobs: Any) -> Linear:
    """The layer of the technique called ``name``, with these knobs."""
    technique = LAYERS.get(name)
    found: Linear = technique.rule(technique.knobs(**knobs))
    return found
