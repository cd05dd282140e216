"""Plain copy: a latency, then the bytes at the link's rate."""

from orrery.base.technique import Technique
from orrery.execution.batch import Floats


def rule(moved_bytes: float, link_bytes_per_s: float, latency_s: float, knobs: Floats) -> float:
    """latency + bytes / rate; nothing for no bytes."""
    if moved_bytes <= 0.0:
        return 0.0
    return latency_s + moved_bytes / link_bytes_per_s


TECHNIQUE = Technique(
    name="plain-copy",
    extension_point="execution.transfer",
    rule=rule,
    gains="The link's full rate.",
    costs="Whoever taps the bus reads what passes.",
    claims=("nvbandwidth",),
)
