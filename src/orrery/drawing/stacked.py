"""Horizontal bars of parts, against a mark where there is one: memory by category, time by operation."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orrery.base.units import percent
from orrery.drawing.axis import Axis, Scale, scale
from orrery.drawing.captions import left_out, not_shown
from orrery.drawing.hatch import fill, hatches, key
from orrery.drawing.paper import SIDE_PX, finish, heading, hue, kinds_of, label, legend, nothing, path, rect, sheet_px
from orrery.drawing.plane import foot_ticks
from orrery.drawing.rows import RowNames, row_names
from orrery.drawing.words import clean, counted, listed, px, width_px

MAX_BARS = 60
MIN_PX = 2.0
"""A part is never drawn narrower, lest it vanish."""

_ROW_PX, _BAR_PX = 30.0, 22.0
_MAX_KEYS = 16


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar; pieces of one kind share a colour, without a kind the name is one."""

    name: str
    value: float
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """Pieces end to end, and a mark that they are held against."""

    name: str
    parts: Sequence[Part]
    mark: float | None = None
    mark_name: str = ""

    def total(self) -> float:
        """All pieces that have a place."""
        return math.fsum(p.value for p in self.parts if _is_drawn(p))


def stacked(bars: Sequence[Bar], axis: Axis, *, title: str, says: str = "") -> str:
    """Bars from zero, one below the other, in the order given; totals at their ends."""
    axis = Axis(axis.label, axis.unit, low=0.0, high=axis.high)
    missing = left_out(sum(1 for b in bars for p in b.parts if not _has_place(p)))
    shown = [b for b in bars if any(_is_drawn(p) for p in b.parts) or _mark(b) is not None][:MAX_BARS]
    if not shown:
        return nothing(title, says, [missing])
    kinds = kinds_of(p.kind or p.name for b in shown for p in b.parts if _is_drawn(p))
    body, top = heading(title, says)
    keys, top = legend([(key(n), kind) for kind, n in list(kinds.items())[:_MAX_KEYS]], top)
    names = row_names((b.name for b in shown), 190.0, 8.0)
    ends = [end for b in shown for end in (b.total(), _mark(b) or 0.0)]
    behind = max(width_px(_end(axis, b), 11) for b in shown) + 8
    along = scale(axis, ends, names.left_px, sheet_px() - SIDE_PX - behind)
    shared = {(_mark(b), b.mark_name) for b in shown}
    common = shared.pop() if len(shared) == 1 else (None, "")
    top += 8.0 if common[0] is None else 22.0
    row_px = _ROW_PX + names.above_px
    foot = top + row_px * len(shown) + 2.0
    lines = "".join(f"M{px(along.at(v))} {px(top)}V{px(foot)}" for v, _ in along.ticks(72.0))
    body += [hatches(kinds.values()), *keys, path(lines, "g")]
    for row, b in enumerate(shown):
        body += _bar(b, along, kinds, names, top + row * row_px + names.above_px + 4.0)
    if common[0] is not None:
        body += _common(common[0], common[1], along, top)
    ticks, end = foot_ticks(along, foot)
    many = not_shown(len(bars) - len(shown), len(bars), "bars")
    return finish([*body, *ticks], end, title, [says, *_describe(axis, shown), many, missing])


def _has_place(p: Part) -> bool:
    return Axis("").takes(p.value) and p.value >= 0


def _is_drawn(p: Part) -> bool:
    return _has_place(p) and p.value > 0


def _mark(b: Bar) -> float | None:
    return b.mark if b.mark is not None and Axis("").takes(b.mark) and b.mark >= 0 else None


def _bar(b: Bar, along: Scale, kinds: dict[str, int], names: RowNames, y: float) -> Iterator[str]:
    yield names.label(b.name, y, y + 15)
    total, so_far, edge = b.total(), 0.0, along.start_px
    for p in b.parts:
        if not _is_drawn(p):
            continue
        number = kinds[p.kind or p.name]
        start = max(edge, min(along.at(so_far), along.end_px))
        so_far += p.value
        edge = max(start + MIN_PX, min(along.at(so_far), along.end_px))
        caption = (
            f"{b.name}, {p.name}: {along.axis.describe(p.value)}, {percent(p.value / total, 1)} of "
            f"{along.axis.describe(total)}"
        )
        width = edge - start
        yield f"<g {fill(number)}>{rect(start, y, width - (1.0 if width > 4 else 0.0), _BAR_PX, '', caption)}</g>"
        if width_px(clean(p.name)) <= width - 12:
            named = label(start + 6, y + 15, p.name, "c")
            yield f'<g class="orr-{hue(number)}" pointer-events="none">{named}</g>'
    mark = _mark(b)
    if mark is not None:
        at = min(along.at(mark), along.end_px)
        yield path(f"M{px(at)} {px(y - 3)}v{px(_BAR_PX + 6)}", "a v")
        edge = max(edge, at)
    yield label(edge + 6, y + 15, _end(along.axis, b), "n o")


def _end(axis: Axis, b: Bar) -> str:
    """The label behind a bar: its total, and the share."""
    mark = _mark(b)
    return axis.describe(b.total()) + (f" of {axis.describe(mark)}" if mark is not None else "")


def _common(mark: float, name: str, along: Scale, top: float) -> Iterator[str]:
    """A mark that all bars share is named once, above them."""
    at = min(along.at(mark), along.end_px)
    caption = f"{clean(name)} {along.axis.describe(mark)}".strip()
    half = width_px(caption, 11) / 2
    yield label(min(at, sheet_px() - SIDE_PX - half), top - 8, caption, "n m")


def _describe(axis: Axis, bars: Sequence[Bar]) -> Iterator[str]:
    for b in bars[:8]:
        parts = (f"{p.name} {axis.describe(p.value)}" for p in b.parts if _is_drawn(p))
        mark = _mark(b)
        against = f", {b.mark_name or 'mark'} {axis.describe(mark)}" if mark is not None else ""
        yield f"{b.name}: {axis.describe(b.total())} in all{against}: {listed(parts)}"
    if len(bars) > 8:
        yield counted(len(bars) - 8, "more bar")
