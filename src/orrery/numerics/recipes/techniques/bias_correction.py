"""Bias correction: the mean error of every output is added to the bias."""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.recipes.prepared import Prepared


def rule(prepared: Prepared, knobs: NoKnobs, rng: np.random.Generator) -> Prepared:
    """b + E[exact output - quantised output], the mean over the calibration activations.

    Errors of weights and activations do not average out over inputs whose mean is not zero. [Nagel et al. 2019,
    Data-free quantization, section 4.2; the mean is measured here, as in their appendix, not derived from a batch
    norm]
    """
    done = prepared.rounded()
    layer = done.layer
    return done.with_correction(bias=(layer.output(layer.inputs) - done.output(layer.inputs)).mean(axis=0))


TECHNIQUE = Technique(
    name="bias-correction",
    extension_point="numerics.recipe",
    rule=rule,
    gains="Takes away the part of the error that is the same for all inputs, at no cost when the layer runs.",
    costs="Nothing of the part that differs from input to input; a bias where there was none.",
    claims=("nagel-2019",),
)
