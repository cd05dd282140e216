"""Pieces: a gather or scatter goes round the ring piece by piece while the product works on the piece that is there."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.train.overlap import Floats, Pair, beside


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceKnobs:
    """Pieces of a product: one for each rank of the ring, of which one is there from the start. [transformer-engine]"""

    num_pieces: int = 8

    def __post_init__(self) -> None:
        check_range(self, "num_pieces", 1, 1024)


def rule(pair: Pair, knobs: Floats) -> Floats:
    """p pieces c of the products and p - 1 messages n: (p - 1)(c beside n) + c, then the weight gradients.

    Or the weight gradients beside whole collectives, where that is shorter: both are in use, a product at a time.
    """
    pieces = int(knobs[0])
    if pieces == 1:
        return pair.serial_s
    piece_s = pair.cut_compute_s(pieces) / pieces
    message_s = pair.cut_network_s(pieces - 1) / (pieces - 1)
    ring_s = (pieces - 1) * beside(piece_s, message_s, pair.contention_ratio) + piece_s + pair.backward_weight_s
    bulk_s = pair.compute_s + beside(pair.backward_weight_s, pair.network_s, pair.contention_ratio)
    return np.minimum(pair.serial_s, pair.inside_s + np.minimum(ring_s, bulk_s))


TECHNIQUE = Technique(
    name="pieces",
    extension_point="execution.tensor_overlap",
    rule=rule,
    knobs=PieceKnobs,
    gains="Forward and backward collectives hide behind the very products that need them, but for one piece.",
    costs="Products of a piece fill the device worse, and messages are small.",
    claims=("transformer-engine", "wang-2023"),
)
