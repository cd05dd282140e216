"""Low-rank compensation: the best narrow product is kept beside the rounded weights and added to them."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.recipes.prepared import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRank:
    """``rank`` singular vectors of the error are kept."""

    rank: int = 8

    def __post_init__(self) -> None:
        check_range(self, "rank", 1, 65536)


def rule(prepared: Prepared, knobs: LowRank, rng: np.random.Generator) -> Prepared:
    """W - Ŵ = U S Vᵀ, cut after ``rank`` and split as (V sqrt S)(sqrt S Uᵀ): the nearest matrix of that rank.

    [Yao et al. 2023, ZeroQuant-V2, section 4: LoRC, as ZeroQuant-FP uses it with rank 8] Factors stay in 16 bits.
    """
    done = prepared.rounded()
    error = done.exact_weights.astype(np.float64) - done.weights
    left, sizes, right = np.linalg.svd(error, full_matrices=False)
    root = np.sqrt(sizes[: knobs.rank])
    return done.with_correction(low_rank=(right[: knobs.rank].T * root, root[:, None] * left[:, : knobs.rank].T))


TECHNIQUE = Technique(
    name="low-rank",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=LowRank,
    gains="Whatever part of the error many weights share is gone.",
    costs="Two narrow 16-bit matrices to keep and to multiply by; little help where errors are like noise.",
    claims=("yao-2023", "wu-2023"),
)
