"""GPTQ: column after column is rounded, and what each loses the rest makes up for."""

import numpy as np

from orrery.base.technique import Technique
from orrery.numerics.recipes.compensated import Compensation, round_compensated
from orrery.numerics.recipes.prepared import Prepared


def rule(prepared: Prepared, knobs: Compensation, rng: np.random.Generator) -> Prepared:
    """The weights on the scheme's grid by ``compensated``, for the activations as they will arrive, rounded.

    [Frantar et al. 2022, GPTQ, algorithm 1; act-order and static groups from the authors' code, as recalled]
    """
    if (grid := prepared.scheme.weights) is None:
        return prepared.rounded()
    fitted = grid.fit(prepared.weights)
    return prepared.with_rounded(round_compensated(prepared.weights, fitted, prepared.on_grid(prepared.inputs), knobs))


TECHNIQUE = Technique(
    name="gptq",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=Compensation,
    gains="A lower output error from the same bits, the more so the more the inputs are correlated.",
    costs="Calibration, and time cubic in the width; single weights may move by more than half a step.",
    claims=("frantar-2022",),
)
