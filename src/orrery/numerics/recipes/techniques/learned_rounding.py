"""Learned rounding: up or down is learned for each weight from the error of the output."""

import numpy as np

from orrery.base.technique import Technique
from orrery.numerics.recipes.learned import Learning, round_learned
from orrery.numerics.recipes.prepared import Prepared


def rule(prepared: Prepared, knobs: Learning, rng: np.random.Generator) -> Prepared:
    """The weights on the scheme's grid by ``learned``. [Nagel et al. 2020, AdaRound, section 4]"""
    if (grid := prepared.scheme.weights) is None:
        return prepared.rounded()
    inputs = prepared.inputs
    fitted = grid.fit(prepared.weights)
    return prepared.with_rounded(round_learned(prepared.weights, fitted, inputs, prepared.on_grid(inputs), knobs))


TECHNIQUE = Technique(
    name="learned-rounding",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=Learning,
    gains="A lower output error from the same bits; no weight moves by more than one step.",
    costs="Calibration and hundreds of gradient steps for every layer.",
    claims=("nagel-2020",),
)
