"""Points on two axes in the terminal, and the Pareto front of serving plans: a table where a picture is no use."""

from collections.abc import Sequence
from math import isfinite

from rich.console import Console

from orrery.base.units import figures
from orrery.cli.sheet import Sheet
from orrery.planner.plan import FrontPoint, Operation
from orrery.planner.rejection_reasons import described

NARROWEST = 60
"""Columns below which a plot says less than a table."""

HEIGHT = 18
ROWS = 5
"""Points of the front that are spelled out, spread evenly along it."""


def draw_front(out: Console, points: Sequence[FrontPoint], chosen: Operation | None) -> None:
    """The front as a picture, or as a table on narrow and dumb terminals."""
    title = "Pareto front: output tokens/s/device against tokens/s/user"
    if not can_plot(out):
        out.print(_table(title, points))
        return
    xs = [p.output_tokens_per_s_per_user for p in points]
    ys = [p.output_tokens_per_s_per_device for p in points]
    marks = ["o" if p.meets_objectives else "." for p in points]
    if chosen and chosen.tpot_s > 0:
        xs.append(1.0 / chosen.tpot_s)
        ys.append(chosen.output_tokens_per_s / chosen.num_devices)
        marks.append("X")
    drawn = plot(xs, ys, marks, ("tok/s/user", "tok/s/device"), min(out.width, 100), HEIGHT)
    out.print(drawn, markup=False, highlight=False)
    out.print("  o meets the objectives   . does not   X the first plan" if chosen else "  o meets   . does not")
    out.print(_table("On the front", [p for p in points if p.meets_objectives] or list(points)))


def can_plot(out: Console) -> bool:
    """Whether a picture says anything: not on narrow and dumb terminals."""
    return out.width >= NARROWEST and not out.is_dumb_terminal and out.encoding.casefold() in ("utf-8", "utf8")


def plot(
    xs: Sequence[float],
    ys: Sequence[float],
    marks: Sequence[str],
    labels: tuple[str, str],
    columns: int,
    rows: int,
    ticks: str = ",.0f",
) -> str:
    """A mark for every point, on axes from zero; a later one hides those below it. ``labels`` of x and y."""
    left = 9
    wide, high = columns - left - 2, rows - 3
    top_x, top_y = _round_up(max(xs)), _round_up(max(ys))
    lines = [labels[1]]
    for row, cells in enumerate(raster(xs, ys, marks, (wide, high), (0.0, top_x), (0.0, top_y))):
        label = format(top_y * (high - row) / high, ticks) if row % 4 == 0 or row == high else ""
        lines.append(f"{label:>{left - 1}} |{cells}")
    axis = [" "] * (wide + 12)
    for i in range(5):
        tick = format(top_x * i / 4, ticks)
        axis[round(i / 4 * wide) : round(i / 4 * wide) + len(tick)] = tick
    lines += [" " * left + "+" + "-" * wide, " " * (left + 1) + "".join(axis).rstrip() + f"  {labels[0]}"]
    return "\n".join(lines)


def raster(
    xs: Sequence[float],
    ys: Sequence[float],
    marks: Sequence[str],
    size: tuple[int, int],
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
) -> list[str]:
    """Marks on (columns, rows) of characters between both ends of each axis, the top row first."""
    wide, high = size
    grid = [[" "] * (wide + 1) for _ in range(high + 1)]
    for x, y, mark in zip(xs, ys, marks, strict=True):
        across, up = (
            (x - x_ends[0]) / ((x_ends[1] - x_ends[0]) or 1.0),
            (y - y_ends[0]) / ((y_ends[1] - y_ends[0]) or 1.0),
        )
        grid[high - round(up * high)][round(across * wide)] = mark
    return ["".join(cells).rstrip() for cells in grid]


TICK_COLUMNS = 6
"""Columns taken by the last number of an axis and its gap."""

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Marks of points that a table names beside the picture."""


def lettered(points: Sequence[tuple[str, float, float]], labels: tuple[str, str], columns: int, rows: int) -> str:
    """Points of a mark, x and y; infinity is drawn at the largest finite value, what is below zero at zero."""
    marks, xs, ys = zip(*points, strict=True)
    columns -= len(labels[0]) + TICK_COLUMNS
    return plot([_finite(x, xs) for x in xs], [_finite(y, ys) for y in ys], marks, labels, columns, rows, ".3g")


def _finite(value: float, among: Sequence[float]) -> float:
    top = max((v for v in among if isfinite(v)), default=0.0)
    return min(max(value, 0.0), max(top, 0.0))


def _round_up(value: float) -> float:
    """The next 1, 1.5, 2, 3, 4, 5 or 8 times a power of ten."""
    scale = 10.0 ** (len(f"{int(value)}") - 1) if value >= 1 else 0.1
    return next(s * scale for s in (1, 1.5, 2, 3, 4, 5, 8, 10, 100) if s * scale >= value)


def _table(title: str, points: Sequence[FrontPoint]) -> Sheet:
    table = Sheet("plan", "in flight", "tok/s/user", "tok/s/device", "meets", title=title)
    steps = min(ROWS, len(points))
    for p in (points[i * (len(points) - 1) // max(1, steps - 1)] for i in range(steps)):
        table.add_row(
            described(p.candidate),
            figures(p.concurrency),
            f"{p.output_tokens_per_s_per_user:,.0f}",
            f"{p.output_tokens_per_s_per_device:,.0f}",
            "yes" if p.meets_objectives else "no",
        )
    return table
