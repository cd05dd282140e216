"""Round to nearest: every weight to the grid point beside it, whatever the layer computes."""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.recipes.prepared import Prepared


def rule(prepared: Prepared, knobs: NoKnobs, rng: np.random.Generator) -> Prepared:
    """Scales from the largest magnitudes, weights to nearest: what every other recipe is compared with."""
    return prepared.rounded()


TECHNIQUE = Technique(
    name="round-to-nearest",
    extension_point="numerics.recipe",
    rule=rule,
    gains="Needs no data and no time.",
    costs="Ignores which errors the activations will magnify.",
    claims=("nagel-2020",),
)
