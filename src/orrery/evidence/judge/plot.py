"""Predicted against reported, one point a claim, drawn as SVG on logarithmic axes."""

import math
from collections.abc import Sequence
from html import escape

from orrery.evidence.amounts import amount
from orrery.evidence.judge.judged import Judged
from orrery.evidence.judge.page import reported

PANELS = (
    ("ratios: how many times better", "ratio"),
    ("shares: how much less or more", "frac"),
    ("everything else, SI units", ""),
)
SIDE, PAD = 300, 44
COLOURS = {"repeats": "#35526b", "misses": "#b5533c"}
STYLE = (
    "<style>text{font-family:ui-sans-serif,system-ui,sans-serif;font-size:11px;fill:#4a525a}"
    ".t{font-size:12px;font-weight:600;fill:#29313a}</style>"
)
TOLERANCE = math.log10(1.2)


def draw(judged: Sequence[Judged]) -> str:
    """Three panels; only positive numbers have a place on these axes."""
    width, height = len(PANELS) * (SIDE + PAD) + PAD, SIDE + 2 * PAD
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        ' aria-label="Predicted against reported claims of papers">',
        STYLE,
    ]
    named = {unit for _, unit in PANELS if unit}
    for i, (title, unit) in enumerate(PANELS):
        inside = [j for j in judged if (j.claim.unit == unit if unit else j.claim.unit not in named)]
        out += _panel(PAD + i * (SIDE + PAD), PAD, title, inside)
    return "\n".join([*out, "</svg>", ""])


def _panel(x: int, y: int, title: str, judged: Sequence[Judged]) -> list[str]:
    """A square with equal axes, the diagonal, and the band within which a claim repeats."""
    points = [(math.log10(_near(j)), math.log10(p), j) for j in judged if (p := j.predicted) and p > 0.0 < _near(j)]
    ends = [end for point in points for end in point[:2]] or [0.0, 1.0]
    low, high = min(ends) - 0.2, max(ends) + 0.2
    scale = SIDE / (high - low)

    def at(power: float) -> float:
        return (power - low) * scale

    band, right, foot = TOLERANCE * scale, x + SIDE, y + SIDE
    out = [
        f'<text class="t" x="{x}" y="{y - 8}">{title} ({len(points)})</text>',
        f'<clipPath id="c{x}"><rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"/></clipPath>',
        f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" fill="#fbfaf7" stroke="#cfc8bb"/>',
        f'<path clip-path="url(#c{x})" d="M{x} {foot - band:.1f} L{right} {y - band:.1f} L{right} {y + band:.1f}'
        f' L{x} {foot + band:.1f} Z" fill="#e6e0d4"/>',
        f'<path d="M{x} {foot} L{right} {y}" stroke="#8c8577" stroke-width="0.8"/>',
    ]
    for reported_at, predicted_at, j in points:
        told = f"{j.paper}, {j.claim.id}: reported {reported(j)}, predicted {amount(10**predicted_at, j.claim.unit)}"
        out.append(
            f'<circle cx="{x + at(reported_at):.1f}" cy="{y + SIDE - at(predicted_at):.1f}" r="2.4"'
            f' fill="{COLOURS[j.verdict]}" fill-opacity="0.6"><title>{escape(told)}</title></circle>'
        )
    step = max(1, round((high - low) / 8))
    for power in range(math.ceil(low), math.floor(high) + 1, step):
        out.append(f'<text x="{x + at(power):.0f}" y="{y + SIDE + 14}" text-anchor="middle">{_tick(power)}</text>')
        out.append(f'<text x="{x - 4}" y="{y + SIDE - at(power) + 4:.0f}" text-anchor="end">{_tick(power)}</text>')
    return [*out, f'<text x="{x + SIDE / 2:.0f}" y="{y + SIDE + 30}" text-anchor="middle">reported</text>']


def _near(j: Judged) -> float:
    """The reported number; of a range the end that is nearest to the prediction, or the prediction inside it."""
    predicted = 0.0 if j.predicted is None else j.predicted
    return min(max(predicted, j.claim.low), j.claim.high)


def _tick(power: int) -> str:
    return f"10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
