"""Token split: two wave-aligned halves of the tokens take turns, one computing while the other is summed and normed."""

from dataclasses import dataclass

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.execution.batch import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSplitKnobs:
    """Knobs of the fused all-reduce and norm.

    ``communication_units`` of ``num_units`` (2 to 8 SMs where the switch adds [tokenweave-2025]). ``norm_frac`` of the
    memory-bound time is norms with residual additions: the fused kernel does them on 1/``num_devices`` of the tokens,
    between reduce-scatter and all-gather. 0 leaves the norms where they are; ``overlap.norm_frac`` works it out.
    """

    communication_units: int = 8
    num_units: int = 132
    norm_frac: float = 0.0
    num_devices: int = 8

    def __post_init__(self) -> None:
        check_above(self, "num_units", 0)
        check_range(self, "communication_units", 0, self.num_units - 1)
        check_range(self, "norm_frac", 0.0, 1.0)
        check_above(self, "num_devices", 0)


def rule(
    total_s: float,
    network_s: float,
    memory_s: float,
    split_extra_s: float,
    halves_network_extra_s: float,
    num_layers: float,
    knobs: Floats,
) -> float:
    """2 B stages of half a block (B = 2 num_layers), each c = kernels/2B and n = network/2B: c + (2B - 1) max + n.

    The longer of n and c + u n counts, u being the share of units that the fused kernel holds (compute-bound kernels
    only). Both sides pay what halves cost; the result is what is better, split or whole.
    """
    stages = 4.0 * num_layers
    if stages < 1.0 or network_s <= 0.0 or total_s <= network_s:
        return total_s
    norms_s = knobs[2] * memory_s
    compute_s = max(0.0, total_s - network_s - memory_s) + split_extra_s
    kernels_s = memory_s - norms_s + compute_s
    fused_s = network_s + halves_network_extra_s + norms_s / knobs[3]
    taken = knobs[0] / knobs[1] * compute_s / kernels_s if kernels_s > 0.0 else 0.0
    here_s, there_s = kernels_s / stages, fused_s / stages
    stage_s = max(there_s, here_s + taken * there_s)
    return min(total_s, here_s + (stages - 1.0) * stage_s + there_s)


TECHNIQUE = Technique(
    name="token-split",
    extension_point="execution.overlap",
    rule=rule,
    knobs=TokenSplitKnobs,
    gains="Collectives hide behind the other half's kernels, and norms are shared out between the devices.",
    costs="Weights are read twice and waves fill worse, so it pays from about a thousand tokens; a few units are lost.",
    claims=("tokenweave-2025",),
)
