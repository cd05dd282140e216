"""Verdict on a prediction against the number that a paper reports.

A verdict counts only where it could have failed. ``reproduced``: met, and not met with the technique switched off.
``no evidence``: met, and so it would be with no effect at all. ``sign only``: the paper claims a direction alone,
which comes out. ``not counted``: an echo of an input, a definition, what holds by construction. ``anchored``: clipped
by, fitted to or worked out of the paper's own numbers. ``not modeled``: nothing is predicted.
"""

from typing import Literal, get_args

from orrery.evidence.paper_file import Claim

Verdict = Literal["reproduced", "not reproduced", "no evidence", "sign only", "not counted", "anchored", "not modeled"]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""All of them, those first that could have failed."""

EXPLAINED_BEYOND_FRAC = 0.2
"""A difference above this is shown with the input or mechanism behind it, as every miss is."""

NEAR_ZERO_FRAC = 0.05
"""Where zero is reported a relative tolerance says nothing; so many points are then the same."""

NEUTRAL = {"ratio": 1.0, "frac": 0.0, "points": 0.0}
"""Value of a comparison without effect, by its unit."""


def neutral(claim: Claim) -> float | None:
    """The prediction at which nothing is gained or lost; None where the claim compares nothing."""
    return NEUTRAL.get(claim.unit) if claim.baseline else None


def verdict(claim: Claim, predicted: float | None) -> Verdict:
    """Verdict on a prediction: by its number, the whole range of its assumptions, and the null value."""
    if predicted is None:
        return "not modeled"
    if claim.judged in ("not counted", "anchored"):
        return claim.judged
    if not all(is_met(claim, value) for value in (predicted, *claim.assumed)):
        return "not reproduced"
    if claim.judged == "no evidence":
        return "no evidence"
    if claim.judged == "sign only" or _is_sign(claim):
        return "sign only"
    nothing = neutral(claim)
    return "reproduced" if nothing is None or not is_met(claim, nothing) else "no evidence"


def is_met(claim: Claim, value: float) -> bool:
    """Whether a number is what the paper reports.

    Bounds have no tolerance. Else a fifth of the number: of a comparison's ratio, a fifth of the gain; of a share above
    a half, what remains to one must be as near too.
    """
    if claim.reading == "at least":
        return value >= claim.low
    if claim.reading == "less than":
        return value < claim.high
    low, high = accepted(claim)
    return low <= value <= high


def accepted(claim: Claim) -> tuple[float, float]:
    """The numbers that count as what is reported; a bound is met at its own side only."""
    if claim.reading in ("at least", "less than"):
        return claim.low, claim.high
    base = NEUTRAL["ratio"] if claim.unit == "ratio" and claim.baseline else 0.0
    low = claim.low - _near(claim.low - base, claim)
    high = claim.high + _near(claim.high - base, claim)
    if claim.unit == "frac" and 0.5 < claim.low <= claim.high <= 1.0 and not claim.is_increase:
        low = max(low, claim.low - _near(1.0 - claim.low, claim))
        high = min(high, claim.high + _near(1.0 - claim.high, claim))
    return low, high


def _near(effect: float, claim: Claim) -> float:
    """Tolerance by the size of an effect."""
    return claim.tolerance_frac * abs(effect) or NEAR_ZERO_FRAC


def is_reversed(claim: Claim, predicted: float) -> bool:
    """Whether a comparison comes out the other way round: worse here what is better in the paper, or better what is
    worse."""
    nothing = neutral(claim)
    if nothing is None:
        return False
    above = claim.high > nothing <= claim.low or (claim.reading == "at least" and claim.low >= nothing)
    below = claim.low < nothing >= claim.high or (claim.reading == "less than" and claim.high <= nothing)
    return (above and predicted < nothing) or (below and predicted > nothing)


def _is_sign(claim: Claim) -> bool:
    """Whether a claim is a bound at the number of no effect: it says which is better, not by how much."""
    end = {"at least": claim.low, "less than": claim.high}.get(claim.reading)
    return end is not None and end == NEUTRAL.get(claim.unit)


def ratio(claim: Claim, predicted: float) -> float:
    """Predicted over reported; over the nearer end of a range, and 1 inside it. ``nan`` where zero was reported."""
    nearest = min(max(predicted, claim.low), claim.high)
    return predicted / nearest if nearest else float("nan")
