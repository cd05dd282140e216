"""The Pareto front in the terminal: tokens/s/user against tokens/s/device, a table where that is no use."""

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from orrery.planner.plan import FrontPoint, Operation
from orrery.planner.why_not import described

NARROWEST = 60
"""Columns below which a plot says less than a table."""

HEIGHT = 18
ROWS = 5
"""Points of the front that are spelled out, spread evenly along it."""


def draw_front(out: Console, points: Sequence[FrontPoint], chosen: Operation | None) -> None:
    """The front as a picture, or as a table on narrow and dumb terminals."""
    title = "Pareto front: output tokens/s/device against tokens/s/user"
    if out.width < NARROWEST or out.is_dumb_terminal or out.encoding.casefold() not in ("utf-8", "utf8"):
        out.print(_table(title, points))
        return
    out.print(plot(points, chosen, min(out.width, 100), HEIGHT), markup=False, highlight=False)
    out.print("  o meets the objectives   . does not   X the first plan" if chosen else "  o meets   . does not")
    out.print(_table("On the front", [p for p in points if p.meets_objectives] or list(points)))


def plot(points: Sequence[FrontPoint], chosen: Operation | None, columns: int, rows: int) -> str:
    """Characters on a grid: x tokens/s/user, y tokens/s/device."""
    xs = [p.output_tokens_per_s_per_user for p in points]
    ys = [p.output_tokens_per_s_per_device for p in points]
    marks = ["o" if p.meets_objectives else "." for p in points]
    if chosen and chosen.tpot_s > 0:
        xs.append(1.0 / chosen.tpot_s)
        ys.append(chosen.output_tokens_per_s / chosen.num_devices)
        marks.append("X")
    left = 9
    wide, high = columns - left - 2, rows - 3
    grid = [[" "] * (wide + 1) for _ in range(high + 1)]
    top_x, top_y = _round_up(max(xs)), _round_up(max(ys))
    for x, y, mark in zip(xs, ys, marks, strict=True):
        grid[high - round(y / top_y * high)][round(x / top_x * wide)] = mark
    lines = ["tok/s/device"]
    for row, cells in enumerate(grid):
        label = f"{top_y * (high - row) / high:,.0f}" if row % 4 == 0 or row == high else ""
        lines.append(f"{label:>{left - 1}} |{''.join(cells).rstrip()}")
    ticks = [f"{top_x * i / 4:,.0f}" for i in range(5)]
    axis = [" "] * (wide + 12)
    for i, tick in enumerate(ticks):
        axis[round(i / 4 * wide) : round(i / 4 * wide) + len(tick)] = tick
    lines += [" " * left + "+" + "-" * wide, " " * (left + 1) + "".join(axis).rstrip() + "  tok/s/user"]
    return "\n".join(lines)


def _round_up(value: float) -> float:
    """The next 1, 1.5, 2, 3, 4, 5 or 8 times a power of ten."""
    scale = 10.0 ** (len(f"{int(value)}") - 1) if value >= 1 else 0.1
    return next(s * scale for s in (1, 1.5, 2, 3, 4, 5, 8, 10, 100) if s * scale >= value)


def _table(title: str, points: Sequence[FrontPoint]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for column in ("plan", "in flight", "tok/s/user", "tok/s/device", "meets"):
        table.add_column(column, justify="left" if column == "plan" else "right")
    steps = min(ROWS, len(points))
    for p in (points[i * (len(points) - 1) // max(1, steps - 1)] for i in range(steps)):
        table.add_row(
            described(p.candidate), f"{p.concurrency:.3g}", f"{p.output_tokens_per_s_per_user:,.0f}",
            f"{p.output_tokens_per_s_per_device:,.0f}", "yes" if p.meets_objectives else "no",
        )  # fmt: skip
    return table
