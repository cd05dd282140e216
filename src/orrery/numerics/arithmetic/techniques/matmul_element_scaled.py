"""Dequantise first: every weight becomes a number before it is multiplied, as kernels without few-bit units do."""

from dataclasses import dataclass
from math import ceil

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.matmul import Counts, FewBitWeights, Floats, Product, exact


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementScaledKnobs:
    """Tokens that use a weight once it is a number; the next ones make it anew."""

    tile_tokens: int = 128

    def __post_init__(self) -> None:
        check_range(self, "tile_tokens", 1, 1 << 20)


def rule(activations: Floats, weights: FewBitWeights, knobs: ElementScaledKnobs) -> Product:
    """Zero off, times scale, then multiply and add."""
    tokens, work = len(activations), len(activations) * weights.codes.size
    made = weights.codes.size * ceil(tokens / knobs.tile_tokens)
    counts = Counts(num_multiplies=work, num_adds=work + made, num_scalings=made)
    return Product(values=exact(activations, weights), counts=counts)


TECHNIQUE = Technique(
    name="matmul-element-scaled",
    extension_point="numerics.matmul",
    rule=rule,
    knobs=ElementScaledKnobs,
    gains="Any weight format feeds the multipliers that exist.",
    costs="Every weight is dequantised again for every tile of tokens, and multiplied in the wide format.",
    claims=("mixpe", "tilus"),
)
