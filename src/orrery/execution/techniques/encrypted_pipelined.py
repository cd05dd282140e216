"""Encrypted, pipelined: what the device will probably ask for is encrypted ahead, while it computes."""

from dataclasses import dataclass

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.execution.batch import Floats

HIT_FRAC = "hit_frac"
"""The knob that a simulated predictor sets, transfer by transfer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinedKnobs:
    """The serial settings, and how well and how early the next bytes are guessed.

    ``hit_frac`` of the transfers were guessed right; on a miss the ciphertexts that follow in line are void, because
    each carries the next counter value, and ``flush_s`` goes to dropping them; the bytes that are asked for are then
    encrypted in pieces of ``piece_bytes``, each copied while the next one is encrypted. ``ahead_s`` is the computing
    between transfers under which encryption runs. Hit share, cores, flush and pieces are assumed; [pipellm-2025] states
    the mechanism.
    """

    core_bytes_per_s: float = 3.4e9
    num_cores: int = 8
    call_s: float = 10e-6
    hit_frac: float = 0.95
    flush_s: float = 100e-6
    ahead_s: float = 0.0
    piece_bytes: float = 1e6

    def __post_init__(self) -> None:
        check_above(self, "core_bytes_per_s", 0.0)
        check_above(self, "num_cores", 0)
        check_above(self, "piece_bytes", 0.0)
        check_range(self, "hit_frac", 0.0, 1.0)
        for name in ("call_s", "flush_s", "ahead_s"):
            check_range(self, name, 0.0, float("inf"))


def rule(moved_bytes: float, link_bytes_per_s: float, latency_s: float, knobs: Floats) -> float:
    """A hit shows the slower of link and of what encryption is still behind; a miss the slower of both, the first piece
    of the quicker one, and the flush."""
    if moved_bytes <= 0.0:
        return 0.0
    link_s, encrypt_s = moved_bytes / link_bytes_per_s, moved_bytes / (knobs[0] * knobs[1])
    hit_s = max(link_s, encrypt_s - knobs[5])
    first = 1.0 if moved_bytes <= knobs[6] else knobs[6] / moved_bytes
    miss_s = max(link_s, encrypt_s) + first * min(link_s, encrypt_s) + knobs[4]
    return latency_s + knobs[2] + knobs[3] * hit_s + (1.0 - knobs[3]) * miss_s


TECHNIQUE = Technique(
    name="encrypted-pipelined",
    extension_point="execution.transfer",
    rule=rule,
    knobs=PipelinedKnobs,
    gains="Encryption leaves the critical path where the next transfer can be guessed.",
    costs="Host cores that encrypt ahead; a wrong guess throws their work away.",
    claims=("pipellm-2025",),
    measure="how often the next transfer is guessed right in your traffic",
)
