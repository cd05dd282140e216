"""Whether a paper's number comes out of the house again."""

from typing import Literal

from orrery.evidence.paper_file import Claim

Verdict = Literal["repeats", "misses", "reported only"]

EXPLAINED_BEYOND_FRAC = 0.2
"""A difference above this is never left without the input or mechanism behind it."""


NEAR_ZERO_FRAC = 0.05
"""Where zero is reported a relative tolerance says nothing; so many points are then the same."""


REDUCED = ("reduction", "saving", "saved")
"""Words of metrics that say which share is gone."""


def verdict(claim: Claim, predicted: float | None) -> Verdict:
    """``repeats``: the reported number, or range, is met to the claim's tolerance, as the paper means it.

    "at least" and "less than" are bounds; "up to" is the best of several cases and is compared like a number, and so
    are "mean" and "about". Where more than half is gone, what remains must be met as well: 99 % less is a hundredth,
    and 95 % less a twentieth. Nothing predicted: the paper's number stands alone.
    """
    if predicted is None:
        return "reported only"
    is_floor, is_ceiling = claim.reading == "at least", claim.reading == "less than"
    is_met = _is_met(predicted, claim.low, claim.high, claim.tolerance_frac, is_floor, is_ceiling)
    is_large = claim.unit == "frac" and claim.low > 0.5 and any(word in claim.metric for word in REDUCED)
    if is_large:
        remains = 1.0 - predicted, 1.0 - claim.high, 1.0 - claim.low
        is_met = is_met and _is_met(*remains, claim.tolerance_frac, is_ceiling, is_floor)
    return "repeats" if is_met else "misses"


def _is_met(value: float, low: float, high: float, tolerance_frac: float, is_floor: bool, is_ceiling: bool) -> bool:
    """Whether a value lies within a range, to a tolerance; a floor has no upper end, a ceiling no lower one."""
    is_above = value >= low - (tolerance_frac * abs(low) or NEAR_ZERO_FRAC) or is_ceiling
    is_below = value <= high + (tolerance_frac * abs(high) or NEAR_ZERO_FRAC) or is_floor
    return is_above and is_below


def ratio(claim: Claim, predicted: float) -> float:
    """Predicted over reported; over the nearer end of a range, and 1 inside it. ``nan`` where zero was reported."""
    nearest = min(max(predicted, claim.low), claim.high)
    return predicted / nearest if nearest else float("nan")
