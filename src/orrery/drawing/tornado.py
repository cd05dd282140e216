"""Which input moves the answer most: bars about the base, the widest first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orrery.drawing.axis import Axis, Scale, scale
from orrery.drawing.captions import left_out, not_shown
from orrery.drawing.paper import SIDE_PX, finish, heading, label, nothing, path, rect, sheet_px
from orrery.drawing.plane import foot_ticks
from orrery.drawing.rows import RowNames, row_names
from orrery.drawing.words import px

MAX_SWINGS = 40
_ROW_PX, _BAR_PX, _SAYS_PX = 28.0, 16.0, 88.0


@dataclass(frozen=True, slots=True)
class SensitivityBar:
    """The answer at both ends of one input, and what the input is there."""

    name: str
    low: float
    high: float
    low_says: str
    high_says: str


def tornado(swings: Sequence[SensitivityBar], base: float, axis: Axis, *, title: str, says: str = "") -> str:
    """Bars from the base to the answers at both ends of each input."""
    inside = [s for s in swings if axis.takes(s.low) and axis.takes(s.high)]
    missing = left_out(len(swings) - len(inside) + (not axis.takes(base)))
    if not inside or not axis.takes(base):
        return nothing(title, says, [missing])
    ordered = sorted(inside, key=lambda s: (-abs(s.high - s.low), s.name))
    shown = ordered[:MAX_SWINGS]
    body, top = heading(title, says)
    names = row_names((s.name for s in shown), 190.0, 8.0)
    ends = [base, *(end for s in shown for end in (s.low, s.high))]
    along = scale(axis, ends, names.left_px + _SAYS_PX, sheet_px() - SIDE_PX - _SAYS_PX, zero_below=0.0)
    top += 16.0
    row_px = _ROW_PX + names.above_px
    foot = top + row_px * len(shown) + 4.0
    lines = "".join(f"M{px(along.at(v))} {px(top)}V{px(foot)}" for v, _ in along.ticks(72.0))
    body.append(path(lines, "g"))
    for row, s in enumerate(shown):
        body += _swing(s, base, along, names, top + row * row_px + names.above_px + 4.0)
    at = px(along.at(base))
    body += [
        path(f"M{at} {px(top - 4)}V{px(foot)}", "a"),
        label(along.at(base), top - 8, f"base {axis.describe(base)}", "n m"),
    ]
    ticks, end = foot_ticks(along, foot)
    many = not_shown(len(ordered) - len(shown), len(ordered), "inputs")
    return finish([*body, *ticks], end, title, [says, *_describe(axis, base, shown), many, missing])


def _swing(s: SensitivityBar, base: float, along: Scale, names: RowNames, y: float) -> Iterator[str]:
    """The bar of the low end is filled, that of the high end is hollow; what the input is stands outside."""
    yield names.label(s.name, y, y + 12)
    zero = along.at(base)
    outer = {True: zero, False: zero}
    for value, kind, hue, text in ((s.low, "f", "k1", s.low_says), (s.high, "w", "k2", s.high_says)):
        at = along.at(value)
        caption = f"{s.name} = {text}: {along.axis.describe(value)}"
        yield f'<g class="orr-{hue}">{rect(min(zero, at), y, max(abs(at - zero), 1.5), _BAR_PX, kind, caption)}</g>'
        outer[at < zero] = min(outer[True], at) if at < zero else max(outer[False], at)
    for is_left, texts in _sides(s, base):
        x = outer[is_left] - 5 if is_left else outer[is_left] + 5
        yield label(x, y + 12, ", ".join(texts), "n e o" if is_left else "n o", _SAYS_PX)


def _sides(s: SensitivityBar, base: float) -> Iterator[tuple[bool, list[str]]]:
    """The labels on the left and on the right: each end on the side that its bar points to."""
    is_low_left = s.low < base if s.low != base else s.high >= base
    is_high_left = s.high < base if s.high != base else not is_low_left
    for side in (True, False):
        texts = [t for t, is_left in ((s.low_says, is_low_left), (s.high_says, is_high_left)) if t and is_left is side]
        if texts:
            yield side, texts


def _describe(axis: Axis, base: float, swings: list[SensitivityBar]) -> Iterator[str]:
    yield f"{axis.label or 'The answer'} is {axis.describe(base)}; inputs that move it, the strongest first"
    for s in swings[:8]:
        yield f"{s.name}: {axis.describe(s.low)} at {s.low_says}, {axis.describe(s.high)} at {s.high_says}"
