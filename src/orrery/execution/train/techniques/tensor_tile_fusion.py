"""Tile fusion: the collective sends each tile of a product's output as it is finished; the product stays whole."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.train.overlap import Floats, Pair
from orrery.execution.triggered import exchanged_chunks, staged_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TileFusionKnobs:
    """Stages in which tiles are finished and sent, and the share of the collectives that has a product before it.

    One stage for each rank of the ring. An all-reduce on a ring is a reduce-scatter, which is fused with the product
    that makes its input, and a gather of as many bytes, which waits for it: 1/2. ``adds_in_memory`` says that memory
    adds what arrives, so that the collective reads and writes less of what the product needs. [t3-2024]
    """

    num_stages: int = 8
    fused_frac: float = 0.5
    adds_in_memory: bool = False

    def __post_init__(self) -> None:
        check_range(self, "num_stages", 1, 1 << 20)
        check_range(self, "fused_frac", 0.0, 1.0)


def rule(pair: Pair, knobs: Floats) -> Floats:
    """Stages of the products with hops of the fused collectives beside them, then what is not fused.

    Tiles are followed in hardware, so neither side is cut and both are whole in time; they share the memory, which is
    the contention.
    """
    stages, fused = int(knobs[0]), float(knobs[1])
    if stages == 1:
        return pair.serial_s
    slower = 1.0 - 1.0 / pair.contention_ratio
    if knobs[2] > 0.0:
        slower *= exchanged_chunks(stages, adds_in_memory=True) / exchanged_chunks(stages, adds_in_memory=False)
    both_s = staged_s(pair.compute_s, fused * pair.network_s, stages, 1.0 / (1.0 - slower))
    rest_s = (1.0 - fused) * pair.network_s + pair.inside_s + pair.backward_weight_s
    return np.minimum(pair.serial_s, both_s + rest_s)


TECHNIQUE = Technique(
    name="tile-fusion",
    extension_point="execution.tensor_overlap",
    rule=rule,
    knobs=TileFusionKnobs,
    gains="Overlap without smaller products, messages or launches.",
    costs="Hardware that tracks tiles and triggers transfers; both sides share the memory.",
    claims=("t3-2024",),
)
