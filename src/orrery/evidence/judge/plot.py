"""Predicted against reported, one point a claim, drawn as SVG on logarithmic axes."""

from collections.abc import Sequence

from orrery.drawing import Pairs, parity
from orrery.evidence.amounts import amount
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.judge.page import reported

PANELS = (
    ("ratios: how many times better", "ratio"),
    ("shares: how much less or more", "frac"),
    ("everything else, SI units", ""),
)


def draw(judged: Sequence[ClaimResult]) -> str:
    """A panel for each kind of claim that there is; only positive numbers have a place on these axes."""
    named = {unit for _, unit in PANELS if unit}
    panels: list[Pairs] = []
    for title, unit in PANELS:
        inside = [j for j in judged if (j.claim.unit == unit if unit else j.claim.unit not in named)]
        panels.append(_panel(title, unit, [(j, p) for j in inside if (p := j.predicted) and p > 0.0 < _near(j, p)]))
    drawn = [panel for panel in panels if len(panel.found)]
    return parity(drawn, title="Claims: predicted against reported", names=("reported", "predicted")) + "\n"


def _panel(title: str, unit: str, judged: Sequence[tuple[ClaimResult, float]]) -> Pairs:
    return Pairs(
        title,
        [_near(j, predicted) for j, predicted in judged],
        [predicted for _, predicted in judged],
        unit,
        [_describe(j, predicted) for j, predicted in judged],
        [j.verdict == "not reproduced" for j, _ in judged],
    )


def _describe(j: ClaimResult, predicted: float) -> str:
    return f"{j.paper}, {j.claim.id}: reported {reported(j)}, predicted {amount(predicted, j.claim.unit)}"


def _near(j: ClaimResult, predicted: float) -> float:
    """The reported number; of a range the end that is nearest to the prediction, or the prediction inside it."""
    return min(max(predicted, j.claim.low), j.claim.high)
