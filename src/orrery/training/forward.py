"""A forward pass alone, out of the parts of a step: evaluation, log-probabilities, values."""

from collections.abc import Mapping

BOTH_WAYS = ("tensor parallel", "context parallel", "expert parallel", "sharding", "launches", "hand-overs")
"""Parts that the forward pass has half of."""


def forward_pass_s(parts: Mapping[str, float]) -> float:
    """The forward part of a step: its work, half of what goes both ways, and as much of the bubble as of the work."""
    work = sum(parts[n] for n in ("forward", "backward", "weight gradients", "recomputation"))
    share = parts["forward"] / work if work > 0.0 else 0.0
    return parts["forward"] + 0.5 * sum(parts[n] for n in BOTH_WAYS) + share * parts["bubble"]
