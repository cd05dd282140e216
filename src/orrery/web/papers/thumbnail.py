"""A paper's curve as small as a stamp: the line, the side that helps, its best value, and the ends of the input."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from orrery.evidence.amounts import amount, input_name, input_text
from orrery.evidence.find.crossing import LOGARITHMIC_RATIO, Point, Reading
from orrery.web.papers.messages import describe

WIDTH, HEIGHT = 160.0, 100.0
LEFT, RIGHT, TOP, BOTTOM = 10.0, 150.0, 28.0, 74.0

MAX_ENDS, MAX_LETTERS = 10, 17
"""Letters of an end of the input, and of both ends with the input's name between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A curve in a plane of one by one, from the left and from above."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    zero_frac: float  # of no gain; the lower edge where nothing is compared
    is_line: bool  # else values of an input that is no number
    best: int  # the point whose value is written
    value: str
    ends: tuple[str, str]


def shape_of(reading: Reading) -> Shape | None:
    """The curve's shape; None where it has no two finite points."""
    points = [p for p in reading.points if math.isfinite(p.predicted)]
    if len(points) < 2:
        return None
    numbers = _numbers(points)
    *y, zero = _down([p.predicted for p in points], reading.neutral)
    best = _best(reading, points)
    value = amount(points[best].predicted, reading.unit) + ("x" if reading.unit == "ratio" else "")
    return Shape(
        x=tuple(_across(numbers or [float(i) for i in range(len(points))])),
        y=tuple(y),
        zero_frac=zero,
        is_line=bool(numbers),
        best=best,
        value=value,
        ends=(input_text(reading.input, points[0].value), input_text(reading.input, points[-1].value)),
    )


def thumbnail(reading: Reading) -> str:
    """SVG text; empty where the curve has no two finite points."""
    shape = shape_of(reading)
    if shape is None:
        return ""
    x = [LEFT + share * (RIGHT - LEFT) for share in shape.x]
    *y, zero = [TOP + share * (BOTTOM - TOP) for share in (*shape.y, shape.zero_frac)]
    marks = _line(x, y, zero) if shape.is_line else _dots(x, y, zero)
    line = f'<line class="zero" x1="{LEFT:g}" x2="{RIGHT:g}" y1="{zero:.1f}" y2="{zero:.1f}"/>'
    parts = [marks, line if reading.neutral is not None else "", _value(shape.value, x[shape.best], y[shape.best])]
    says = escape(describe(reading.sentence, 300), quote=True)
    body = "".join((*parts, *_scale(reading, shape)))
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{says}">{body}</svg>'


def _numbers(points: Sequence[Point]) -> list[float]:
    """Values of the input where they are numbers that grow, as powers where they span far; else nothing."""
    found = [float(p.value) for p in points if not isinstance(p.value, bool | str)]
    if len(found) != len(points) or not all(a < b for a, b in pairwise(found)):
        return []
    is_log = found[0] > 0.0 and found[-1] > LOGARITHMIC_RATIO * found[0]
    return [math.log(value) for value in found] if is_log else found


def _across(values: Sequence[float]) -> list[float]:
    low, high = values[0], values[-1]
    return [(value - low) / (high - low) for value in values]


def _down(predicted: Sequence[float], neutral: float | None) -> list[float]:
    """Depths of the points, and after them that of neutral, or of the lower edge where nothing is compared."""
    values = [*predicted, *([] if neutral is None else [neutral])]
    low, high = min(values), max(values)
    scale = 1.0 / (high - low) if high > low else 0.0
    depths = [1.0 - (value - low) * scale for value in values]
    return depths if neutral is not None else [*depths, 1.0]


def _line(x: Sequence[float], y: Sequence[float], zero: float) -> str:
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    area = f"{x[0]:.1f},{zero:.1f} {line} {x[-1]:.1f},{zero:.1f}"
    return f'<polygon class="area" points="{area}"/><polyline class="line" points="{line}"/>'


def _dots(x: Sequence[float], y: Sequence[float], zero: float) -> str:
    """Words of an input have no line between them."""
    return "".join(f'<path class="line" d="M{a:.1f},{zero:.1f}V{b:.1f}"/>' for a, b in zip(x, y, strict=True))


def _best(reading: Reading, points: Sequence[Point]) -> int:
    """The place of the point that helps most; where none does the one nearest to neutral, else the last one."""
    neutral = reading.neutral
    if neutral is None:
        return len(points) - 1
    gaps = [abs(p.predicted - neutral) * (1.0 if p.is_better else -1.0) for p in points]
    return max(range(len(points)), key=gaps.__getitem__)


def _value(shown: str, x: float, y: float) -> str:
    side = "end" if x > 0.66 * WIDTH else "start" if x < 0.33 * WIDTH else "middle"
    text = f'<text class="value" x="{x:.1f}" y="{max(16.0, y - 9.0):.1f}" text-anchor="{side}">{escape(shown)}</text>'
    return f'<circle class="best" cx="{x:.1f}" cy="{y:.1f}" r="3"/>{text}'


def _scale(reading: Reading, shape: Shape) -> list[str]:
    """The ends of the input, and its name where it fits between them; long numbers leave their unit to the page."""
    first, last = map(_end, shape.ends)
    parts = [f'<text x="{LEFT:g}" y="94">{escape(first)}</text>']
    parts.append(f'<text x="{RIGHT:g}" y="94" text-anchor="end">{escape(last)}</text>')
    name = input_name(reading.input)
    if max(len(first), len(last)) * 2 + len(name) <= MAX_LETTERS:
        parts.append(f'<text x="{WIDTH / 2:g}" y="94" text-anchor="middle">{escape(name)}</text>')
    return parts


def _end(text: str) -> str:
    number, _, unit = text.partition(" ")
    return number if len(text) > MAX_ENDS - 3 and unit and number[0].isdigit() else describe(text, MAX_ENDS)
