"""Ladder residual: a block reads the stream without its predecessor's output, whose all-reduce runs under it."""

from dataclasses import dataclass

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.execution.batch import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderKnobs:
    """Compute units that the collective's kernel holds while it runs, of how many. Assumed: NCCL's 16 channels."""

    communication_units: int = 16
    num_units: int = 132

    def __post_init__(self) -> None:
        check_above(self, "num_units", 0)
        check_range(self, "communication_units", 0, self.num_units - 1)


def rule(
    total_s: float,
    network_s: float,
    memory_s: float,
    split_extra_s: float,
    halves_network_extra_s: float,
    num_layers: float,
    knobs: Floats,
) -> float:
    """B = 2 num_layers blocks of c = compute/B and n = network/B: c + (B - 1) max(n, c + u n) + n.

    u is the share of the units that the collective holds, and counts for compute-bound kernels only. The first block
    has no all-reduce to hide, the last all-reduce no block to hide under.
    """
    blocks = 2.0 * num_layers
    kernels_s = total_s - network_s
    if blocks < 1.0 or network_s <= 0.0 or kernels_s <= 0.0:
        return total_s
    taken = knobs[0] / knobs[1] * max(0.0, kernels_s - memory_s) / kernels_s
    here_s, there_s = kernels_s / blocks, network_s / blocks
    stage_s = max(there_s, here_s + taken * there_s)
    return min(total_s, here_s + (blocks - 1.0) * stage_s + there_s)


TECHNIQUE = Technique(
    name="ladder-residual",
    extension_point="execution.overlap",
    rule=rule,
    knobs=LadderKnobs,
    gains="A layer takes the longer of its kernels and its all-reduces instead of their sum, at any batch size.",
    costs="Another model: trained or adapted with the changed residual stream; its collectives hold compute units.",
    claims=("ladder-residual-2025",),
    measure="the quality of a model that was trained or adapted with the changed residual stream",
)
