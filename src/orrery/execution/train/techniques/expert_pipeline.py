"""Expert pipeline: tokens go out, through the experts and back in chunks, so that exchanges and products overlap."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.train.overlap import Floats, Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertPipelineKnobs:
    """Chunks of the tokens (0: whatever is best, up to ``most_chunks``), and whether links overlap with each other.

    ``has_two_streams`` 1: the exchange between nodes and the gathers inside a node run at once [fsmoe-2025]; 0: one
    stream of collectives [tutel-2023].
    """

    num_chunks: int = 0
    most_chunks: int = 8
    has_two_streams: int = 1

    def __post_init__(self) -> None:
        check_range(self, "num_chunks", 0, 64)
        check_range(self, "most_chunks", 1, 64)
        check_range(self, "has_two_streams", 0, 1)


def rule(pair: Pair, knobs: Floats) -> Floats:
    """The chunks played out in order: out, gather, experts, scatter, back; the best number of chunks.

    Products run slower while a collective runs beside them, by the time that the overlap saved without that.
    """
    given, most, two_streams = int(knobs[0]), int(knobs[1]), bool(knobs[2])
    best_s = pair.serial_s
    for chunks in [given] if given else range(1, most + 1):
        compute_s, network_s = pair.cut_compute_s(chunks), pair.cut_network_s(chunks)
        free_s = _played(pair, compute_s, network_s, chunks, two_streams)
        all_s = compute_s + pair.backward_weight_s + network_s + pair.inside_s
        slower_s = np.maximum(0.0, all_s - free_s) * (1.0 - 1.0 / pair.contention_ratio)
        best_s = np.minimum(best_s, _played(pair, compute_s + slower_s, network_s, chunks, two_streams))
    return best_s


def _played(pair: Pair, compute_s: Floats, network_s: Floats, chunks: int, two_streams: bool) -> Floats:
    """Seconds until the last chunk is back and the weight gradients, which fill the experts' gaps, are done.

    Each stream takes all chunks out before it takes any back, as they become ready.
    """
    expert_s, weight_s = compute_s / chunks, pair.backward_weight_s / chunks
    far_s, near_s = 0.5 * network_s / chunks, 0.5 * pair.inside_s / chunks
    zero_s = np.zeros(np.broadcast_shapes(expert_s.shape, weight_s.shape, far_s.shape, near_s.shape))
    far_free_s = near_free_s = expert_free_s = all_done_s = zero_s
    computed_s: list[Floats] = []
    for _ in range(chunks):
        out_s = (far_free_s if two_streams else np.maximum(far_free_s, near_free_s)) + far_s
        here_s = np.maximum(out_s, near_free_s) + near_s
        far_free_s, near_free_s = out_s, here_s
        expert_free_s = np.maximum(expert_free_s, here_s) + expert_s
        all_done_s = np.maximum(all_done_s, here_s) + expert_s + weight_s
        computed_s.append(expert_free_s)
    for done_s in computed_s:
        start_s = near_free_s if two_streams else np.maximum(far_free_s, near_free_s)
        near_free_s = np.maximum(done_s, start_s) + near_s
        far_free_s = np.maximum(near_free_s, far_free_s) + far_s
    return np.maximum(far_free_s, all_done_s)


TECHNIQUE = Technique(
    name="expert-pipeline",
    extension_point="execution.expert_overlap",
    rule=rule,
    knobs=ExpertPipelineKnobs,
    gains="The longest of exchanges, gathers and experts is what a layer takes, but for the first and last chunk.",
    costs="Experts see a few tokens at a time, and every message pays its latency.",
    claims=("fsmoe-2025", "tutel-2023"),
    measure="how unevenly tokens choose your experts (--expert-loads)",
)
