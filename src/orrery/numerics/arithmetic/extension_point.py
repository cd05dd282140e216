"""The algorithms of this folder by what they compute and by name."""

from typing import Any

from numpy.typing import NDArray

from orrery.base.extension_points import technique_at
from orrery.base.technique import Technique
from orrery.numerics.arithmetic import techniques
from orrery.numerics.arithmetic.computed import Computed


def softmax(name: str, x: NDArray[Any], step_ratio: float = 1.0, **knobs: float) -> Computed:
    """e^(x * step) over its sum along the last axis."""
    return _run("numerics.softmax", name, x, step_ratio, knobs)


def gelu(name: str, x: NDArray[Any], step_ratio: float = 1.0, **knobs: float) -> Computed:
    """x Phi(x), with Phi the distribution function of the normal distribution, for codes x of that step."""
    return _run("numerics.gelu", name, x, step_ratio, knobs)


def layer_norm(name: str, x: NDArray[Any], step_ratio: float = 1.0, **knobs: float) -> Computed:
    """(x - mean) / standard deviation along the last axis; weights and biases belong to what follows."""
    return _run("numerics.layer_norm", name, x, step_ratio, knobs)


def accumulated(name: str, x: NDArray[Any], weights: NDArray[Any], **knobs: float) -> NDArray[Any]:
    """x W^T, for (rows, inner) and (outputs, inner), in the order and width of that name's adders."""
    technique: Technique = technique_at(techniques, "numerics.accumulation", name)
    return technique.rule(x, weights, technique.knobs(**knobs))


def rounded_attention(
    name: str, q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], **knobs: float | str
) -> NDArray[Any]:
    """softmax(Q K^T / sqrt(d)) V for (…, tokens, d), with operands rounded as that name does it."""
    technique: Technique = technique_at(techniques, "numerics.attention", name)
    return technique.rule(q, k, v, technique.knobs(**knobs))


def requantised(name: str, sums: NDArray[Any], scale_ratio: float, **knobs: float) -> NDArray[Any]:
    """INT32 sums times a scale, as codes."""
    technique: Technique = technique_at(techniques, "numerics.requantise", name)
    return technique.rule(sums, scale_ratio, technique.knobs(**knobs))


def _run(extension_point: str, name: str, x: NDArray[Any], step_ratio: float, knobs: dict[str, float]) -> Computed:
    technique: Technique = technique_at(techniques, extension_point, name)
    return technique.rule(x, step_ratio, technique.knobs(**knobs))
