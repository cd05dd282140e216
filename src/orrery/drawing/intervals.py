"""Values with their intervals, one below the other, beside a second value where there is one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orrery.drawing.axis import Axis, Scale, scale
from orrery.drawing.captions import left_out, not_shown
from orrery.drawing.marks import mark
from orrery.drawing.paper import SIDE_PX, finish, heading, is_narrow, label, legend, nothing, path, sheet_px
from orrery.drawing.plane import foot_ticks
from orrery.drawing.rows import RowNames, row_names
from orrery.drawing.words import px, safe

MAX_ROWS = 80
_ROW_PX, _VALUE_PX, _NARROW_VALUE_PX = 26.0, 110.0, 70.0


@dataclass(frozen=True, slots=True)
class Reading:
    """A value, the ends of its interval, and what others found."""

    name: str
    value: float
    low: float
    high: float
    other: float | None = None


def intervals(
    rows: Sequence[Reading],
    axis: Axis,
    *,
    title: str,
    says: str = "",
    names: tuple[str, str] = ("predicted, with its interval", "reported"),
) -> str:
    """Rows in the order given; ``names`` are those of the value and of the other."""
    inside = [r for r in rows if axis.takes(r.value)]
    ends = [v for r in inside for v in (r.low, r.high, r.other) if v is not None]
    missing = left_out(len(rows) - len(inside) + sum(not axis.takes(v) for v in ends))
    shown = inside[:MAX_ROWS]
    if not shown:
        return nothing(title, says, [missing])
    body, top = heading(title, says)
    if any(_other(r, axis) is not None for r in shown):
        keys, top = legend([(_value(0, 0), names[0]), (_hollow(0, 0), names[1])], top)
        body += keys
    rows_of = row_names((r.name for r in shown), 220.0, 10.0, 4.0)
    value_px = _NARROW_VALUE_PX if is_narrow() else _VALUE_PX
    along = scale(
        axis,
        [v for r in shown for v in (r.value, *_ends(r, axis), _other(r, axis)) if v is not None],
        rows_of.left_px,
        sheet_px() - SIDE_PX - value_px,
    )
    row_px = _ROW_PX + rows_of.above_px
    foot = top + row_px * len(shown) + 4.0
    lines = "".join(f"M{px(along.at(v))} {px(top)}V{px(foot)}" for v, _ in along.ticks(72.0))
    body.append(path(lines, "g"))
    for row, r in enumerate(shown):
        body += _row(r, along, rows_of, top + row * row_px + rows_of.above_px + 15.0, names)
    ticks, end = foot_ticks(along, foot, value_px)
    many = not_shown(len(inside) - len(shown), len(inside), "rows")
    return finish([*body, *ticks], end, title, [says, *_describe(axis, shown, names[1]), many, missing])


def _other(r: Reading, axis: Axis) -> float | None:
    return r.other if r.other is not None and axis.takes(r.other) else None


def _ends(r: Reading, axis: Axis) -> tuple[float, ...]:
    return (min(r.low, r.high), max(r.low, r.high)) if axis.takes(r.low) and axis.takes(r.high) else ()


def _value(x: float, y: float) -> str:
    return f'<g class="orr-k1">{mark(0, x, y, 4.2, "r")}</g>'


def _hollow(x: float, y: float) -> str:
    return f'<g class="orr-k6">{mark(3, x, y, 4.2, "w")}</g>'


def _row(r: Reading, along: Scale, rows_of: RowNames, y: float, names: tuple[str, str]) -> Iterator[str]:
    axis, ends, other = along.axis, _ends(r, along.axis), _other(r, along.axis)
    yield rows_of.label(r.name, y - 10, y + 4)
    between = f" ({axis.describe(ends[0])} to {axis.describe(ends[1])})" if ends else ""
    beside = f"; {names[1]} {axis.describe(other)}" if other is not None else ""
    yield f"<g><title>{safe(f'{r.name}: {axis.describe(r.value)}{between}{beside}')}</title>"
    if ends:
        low, high = (min(max(along.at(end), along.start_px), along.end_px) for end in ends)
        bar = f"M{px(low)} {px(y)}H{px(high)}M{px(low)} {px(y - 4)}v8M{px(high)} {px(y - 4)}v8"
        yield f'<g class="orr-k1">{path(bar, "l")}</g>'
    yield _value(along.at(r.value), y)
    if other is not None:
        yield _hollow(along.at(other), y)
    yield "</g>"
    yield label(along.end_px + 12, y + 4, axis.describe(r.value), "n", sheet_px() - SIDE_PX - along.end_px - 4)


def _describe(axis: Axis, rows: Sequence[Reading], other_name: str) -> Iterator[str]:
    held = [(r, ends, other) for r in rows if (ends := _ends(r, axis)) and (other := _other(r, axis)) is not None]
    if held:
        inside = sum(ends[0] <= other <= ends[1] for _, ends, other in held)
        yield f"The interval holds what is {other_name} in {inside} of {len(held)}"
    for r in rows[:12]:
        ends, other = _ends(r, axis), _other(r, axis)
        between = f", {axis.describe(ends[0])} to {axis.describe(ends[1])}" if ends else ""
        yield f"{r.name}: {axis.describe(r.value)}{between}" + (
            f", {other_name} {axis.describe(other)}" if other else ""
        )
    if len(rows) > 12:
        yield f"{len(rows) - 12} more rows"
