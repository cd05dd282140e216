"""One linear layer as a recipe sees it: its weights, what flowed into it, and the grids it is to be stored on."""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.numerics.recipes.grid import Floats, Grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """y = x Wᵀ + b, with activations to calibrate on and others to judge by.

    ``previous_weights`` (in, anything) and ``previous_bias`` (in,) belong to the layer that makes x, where only a
    function that commutes with positive scales (ReLU, or none) stands between.
    """

    weights: Floats  # (out, in)
    inputs: Floats  # (tokens, in), for calibration
    held_out: Floats | None = None  # (tokens, in), never seen by a recipe; None = the inputs again
    bias: Floats | None = None  # (out,)
    previous_weights: Floats | None = None
    previous_bias: Floats | None = None

    def __post_init__(self) -> None:
        width = self.weights.shape[-1]
        rows = (None, width)
        shapes = {
            "weights": rows,
            "inputs": rows,
            "held_out": rows,
            "bias": (len(self.weights),),
            "previous_weights": (width, None),
            "previous_bias": (width,),
        }
        for name, shape in shapes.items():
            if (values := getattr(self, name)) is not None:
                _check(name, values, shape)

    @property
    def judged(self) -> Floats:
        """The activations that an error is measured on."""
        return self.inputs if self.held_out is None else self.held_out

    def output(self, x: Floats) -> Floats:
        """Output of the exact layer, in double precision."""
        exact = x.astype(np.float64) @ self.weights.T.astype(np.float64)
        return exact if self.bias is None else exact + self.bias


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """Formats of the weights and activations; None leaves them as they are."""

    weights: Grid | None
    activations: Grid | None = None


def _check(name: str, values: Floats, shape: tuple[int | None, ...]) -> None:
    """Refuse a wrong shape, an empty array, and anything that is not a finite number."""
    fits = values.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, values.shape, strict=True))
    if not fits or values.size == 0:
        expected = ", ".join("any" if side is None else str(side) for side in shape)
        raise ScenarioError(f"layer: {name} has shape {values.shape}; write an array of shape ({expected}).")
    if not np.isfinite(values).all():
        bad = int(np.count_nonzero(~np.isfinite(values)))
        raise ScenarioError(f"layer: {name} holds {bad} values that are NaN or infinite; write finite numbers.")
