"""Weight gradients: in the backward pass the collectives of input gradients run beside the products for weights."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.train.overlap import Floats, Pair, beside


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightGradientKnobs:
    """Share of the backward collectives' time that weight gradients need not wait for.

    1 where each layer's two all-reduces sum input gradients. With sequence parallelism 2/3: of the six gathers and
    scatters the two that gather an output's gradient are waited for by both products. [korthikanti-2022]
    """

    free_frac: float = 1.0

    def __post_init__(self) -> None:
        check_range(self, "free_frac", 0.0, 1.0)


def rule(pair: Pair, knobs: Floats) -> Floats:
    """compute + rest of the network + (weight gradients beside their share of it); the forward pass hides nothing."""
    free_s = knobs[0] * pair.network_s
    rest_s = pair.network_s - free_s + pair.inside_s
    return pair.compute_s + rest_s + beside(pair.backward_weight_s, free_s, pair.contention_ratio)


TECHNIQUE = Technique(
    name="weight-gradients",
    extension_point="execution.tensor_overlap",
    rule=rule,
    knobs=WeightGradientKnobs,
    gains="Backward collectives hide behind work that nobody waits for.",
    costs="Forward collectives stay; weight gradients run slower beside a collective.",
    claims=("megatron-lm-2021", "korthikanti-2022"),
)
