"""Whether a paper's number comes out of the house again."""

from typing import Literal

from orrery.evidence.paper_file import Claim

Verdict = Literal["repeats", "misses", "reported only"]

EXPLAINED_BEYOND_FRAC = 0.2
"""A difference above this is never left without the input or mechanism behind it."""


NEAR_ZERO_FRAC = 0.05
"""Where zero is reported a relative tolerance says nothing; so many points are then the same."""


def verdict(claim: Claim, predicted: float | None) -> Verdict:
    """``repeats``: the reported number, or range, is met to the claim's tolerance, as the paper means it.

    "at least" and "less than" are bounds; "up to" is the best of several cases and is compared like a number, and so
    are "mean" and "about". Nothing predicted: the paper's number stands alone.
    """
    if predicted is None:
        return "reported only"
    low = claim.low - (claim.tolerance_frac * abs(claim.low) or NEAR_ZERO_FRAC)
    high = claim.high + (claim.tolerance_frac * abs(claim.high) or NEAR_ZERO_FRAC)
    is_above = predicted >= low or claim.reading == "less than"
    is_below = predicted <= high or claim.reading == "at least"
    return "repeats" if is_above and is_below else "misses"


def ratio(claim: Claim, predicted: float) -> float:
    """Predicted over reported; over the nearer end of a range, and 1 inside it. ``nan`` where zero was reported."""
    nearest = min(max(predicted, claim.low), claim.high)
    return predicted / nearest if nearest else float("nan")
