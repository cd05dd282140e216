"""The algorithms of this folder by what they compute and by name."""

from typing import Any

from numpy.typing import NDArray

from orrery.base.extension_points import ExtensionPoint
from orrery.numerics.arithmetic import techniques
from orrery.numerics.arithmetic.computed import Computed

SOFTMAX = ExtensionPoint(name="numerics.softmax", folder=techniques, noun="softmax")
GELU = ExtensionPoint(name="numerics.gelu", folder=techniques, noun="GELU")
LAYER_NORM = ExtensionPoint(name="numerics.layer_norm", folder=techniques, noun="layer norm")
ACCUMULATION = ExtensionPoint(name="numerics.accumulation", folder=techniques, noun="accumulation")
ATTENTION = ExtensionPoint(name="numerics.attention", folder=techniques, noun="attention")
REQUANTISATION = ExtensionPoint(name="numerics.requantise", folder=techniques, noun="requantisation")


def softmax(name: str, x: NDArray[Any], step_ratio: float = 1.0, **knobs: float) -> Computed:
    """e^(x * step) over its sum along the last axis."""
    return _run(SOFTMAX, name, x, step_ratio, knobs)


def gelu(name: str, x: NDArray[Any], step_ratio: float = 1.0, **knobs: float) -> Computed:
    """x Phi(x), with Phi the distribution function of the normal distribution, for codes x of that step."""
    return _run(GELU, name, x, step_ratio, knobs)


def layer_norm(name: str, x: NDArray[Any], step_ratio: float = 1.0, **knobs: float) -> Computed:
    """(x - mean) / standard deviation along the last axis; weights and biases belong to what follows."""
    return _run(LAYER_NORM, name, x, step_ratio, knobs)


def accumulated(name: str, x: NDArray[Any], weights: NDArray[Any], **knobs: float) -> NDArray[Any]:
    """x W^T, for (rows, inner) and (outputs, inner), in the order and width of that name's adders."""
    technique = ACCUMULATION.get(name)
    return technique.rule(x, weights, technique.knobs(**knobs))


def rounded_attention(
    name: str, q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], **knobs: float | str
) -> NDArray[Any]:
    """softmax(Q K^T / sqrt(d)) V for (…, tokens, d), with operands rounded as that name does it."""
    technique = ATTENTION.get(name)
    return technique.rule(q, k, v, technique.knobs(**knobs))


def _run(at: ExtensionPoint, name: str, x: NDArray[Any], step_ratio: float, knobs: dict[str, float]) -> Computed:
    technique = at.get(name)
    return technique.rule(x, step_ratio, technique.knobs(**knobs))
