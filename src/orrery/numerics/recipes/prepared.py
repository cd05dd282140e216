"""A layer on its way to being quantised, and what it computes once it is.

A recipe is a rule ``rule(prepared, knobs, rng) -> Prepared``: it takes the layer as the recipes before it left it and
gives it on, changed by one of the methods here. They keep the order: bases first, then grids, then one rounding of the
weights, then corrections of what is left.

    y = round(x T) Ŵᵀ + (round(x T) R) L + b
"""

from dataclasses import dataclass, replace

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.numerics.recipes.basis import Step
from orrery.numerics.recipes.grid import Floats, Grid
from orrery.numerics.recipes.layer import Layer, Scheme


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """The layer, the grids and the basis chosen for it, its weights in that basis, and what is added to its output."""

    layer: Layer
    scheme: Scheme
    weights: Floats  # (out, in), in the basis: exact until ``is_rounded``, from then on as a kernel would unpack them
    steps: tuple[Step, ...] = ()
    has_grids: bool = False  # a recipe has chosen them, for the weights and activations in the present basis
    is_rounded: bool = False
    bias: Floats | None = None  # (out,), the layer's own with what a correction added
    low_rank: tuple[Floats, Floats] | None = None  # (in, rank) and (rank, out)

    @classmethod
    def of(cls, layer: Layer, scheme: Scheme) -> "Prepared":
        """The layer as it is, nothing done yet."""
        return cls(layer=layer, scheme=scheme, weights=layer.weights, bias=layer.bias)

    # ---- what recipes read

    def to_basis(self, x: Floats) -> Floats:
        """Activations as the layer before would hand them over, in the basis."""
        for step in self.steps:
            x = step.on_activations(x)
        return x

    @property
    def inputs(self) -> Floats:
        """The calibration activations in the basis, before they are rounded."""
        return self.to_basis(self.layer.inputs)

    @property
    def exact_weights(self) -> Floats:
        """The layer's own weights in the basis."""
        weights = self.layer.weights
        for step in self.steps:
            weights = step.on_weights(weights)
        return weights

    @property
    def previous_weights(self) -> Floats | None:
        """The weights of the layer before, (in, anything), with the bases folded into them; None where it has none."""
        before = self.layer.previous_weights
        return None if before is None else self.to_basis(before.T).T

    @property
    def previous_bias(self) -> Floats | None:
        """The bias of the layer before, (in,), with the bases folded into it; None where it has none."""
        before = self.layer.previous_bias
        return None if before is None else self.to_basis(before[None])[0]

    def on_grid(self, x: Floats) -> Floats:
        """Activations in the basis, rounded as they will be when the layer runs; what is not a number stays so."""
        if self.scheme.activations is None:
            return x
        return np.where(np.isnan(x), x, self.scheme.activations.fit(x).round(x))

    # ---- what recipes change

    def with_step(self, step: Step) -> "Prepared":
        """Another basis on top of the present one."""
        self._refuse_rounded("change the basis")
        if self.has_grids:
            raise ScenarioError("recipes: cannot change the basis after the grids were chosen; put that recipe first.")
        return replace(self, steps=(*self.steps, step), weights=step.on_weights(self.weights))

    def with_grids(self, *, weights: Grid | None = None, activations: Grid | None = None) -> "Prepared":
        """Other grids than the scheme's; None keeps what is there."""
        self._refuse_rounded("choose a grid")
        retained = self.scheme
        return replace(
            self,
            has_grids=True,
            scheme=Scheme(weights=weights or retained.weights, activations=activations or retained.activations),
        )

    def with_rounded(self, weights: Floats) -> "Prepared":
        """The weights on their grid, as a kernel would unpack them."""
        self._refuse_rounded("round the weights again")
        return replace(self, weights=weights.astype(np.float32), is_rounded=True)

    def rounded(self) -> "Prepared":
        """The same with its weights rounded to nearest where no recipe has rounded them yet."""
        if self.is_rounded:
            return self
        if (grid := self.scheme.weights) is None:
            return self.with_rounded(self.weights)
        return self.with_rounded(grid.fit(self.weights).round(self.weights))

    def with_activations(self, grid: Grid | None) -> "Prepared":
        """The same weights, run on activations that are rounded to another grid."""
        return replace(self, scheme=Scheme(weights=self.scheme.weights, activations=grid))

    def with_correction(
        self, *, bias: Floats | None = None, low_rank: tuple[Floats, Floats] | None = None
    ) -> "Prepared":
        """Add a vector, or a product through a narrow middle, to the output of the rounded layer."""
        self._refuse_exact()
        own = 0.0 if self.bias is None else self.bias
        return replace(self, bias=self.bias if bias is None else own + bias, low_rank=low_rank or self.low_rank)

    # ---- what it answers

    def output(self, x: Floats) -> Floats:
        """Output of the quantised layer from activations (tokens, in); sums in double precision."""
        self._refuse_exact()
        seen = self.on_grid(self.to_basis(x)).astype(np.float64)
        found = seen @ self.weights.T.astype(np.float64)
        if self.low_rank is not None:
            found += (seen @ self.low_rank[0]) @ self.low_rank[1]
        return found if self.bias is None else found + self.bias

    @property
    def extra_flops_per_token(self) -> float:
        """Work that the exact layer would not do: the bases that are not folded away, and the low rank."""
        rank = 0.0 if self.low_rank is None else 2.0 * sum(float(part.size) for part in self.low_rank)
        return rank + sum(step.flops_per_token(self.weights.shape[1]) for step in self.steps)

    @property
    def extra_bytes(self) -> float:
        """Kept beside the rounded weights: bases, low-rank factors and a bias that was not there, in 16 bits."""
        added = [*(self.low_rank or ())]
        if self.bias is not None and self.layer.bias is None:
            added.append(self.bias)
        return sum(2.0 * part.size for part in added) + sum(step.num_bytes for step in self.steps)

    def _refuse_rounded(self, what: str) -> None:
        """Bases and grids come before rounding, and rounding comes once."""
        if self.is_rounded:
            raise ScenarioError(
                f"recipes: cannot {what} after the weights were rounded; put that recipe first, or leave it out."
            )

    def _refuse_exact(self) -> None:
        """Refuse layers that no recipe has rounded yet."""
        if not self.is_rounded:
            raise ScenarioError("recipes: the weights are not rounded yet; call rounded() or a rounding recipe first.")
