"""Marks that differ in shape as well as in colour."""

from orrery.drawing.paper import classes
from orrery.drawing.words import px

NUM_SHAPES = 8


def mark(shape: int, x: float, y: float, radius_px: float, kind: str) -> str:
    """The ``shape``-th mark about (x, y): circle, square, triangle, diamond, cross, hanging triangle, plus, bar."""
    number, r = shape % NUM_SHAPES, radius_px
    if number == 0:
        return f'<circle{classes(kind)} cx="{px(x)}" cy="{px(y)}" r="{px(r)}"/>'
    return f'<path{classes(kind)} d="{_outline(number, x, y, r)}"/>'


def _outline(number: int, x: float, y: float, r: float) -> str:
    p = px
    third = 0.4 * r
    if number == 1:
        return f"M{p(x - 0.9 * r)} {p(y - 0.9 * r)}h{p(1.8 * r)}v{p(1.8 * r)}h{p(-1.8 * r)}z"
    if number == 2:
        return f"M{p(x)} {p(y - 1.2 * r)}l{p(1.2 * r)} {p(2.1 * r)}h{p(-2.4 * r)}z"
    if number == 3:
        d = 1.3 * r
        return f"M{p(x)} {p(y - d)}l{p(d)} {p(d)}l{p(-d)} {p(d)}l{p(-d)} {p(-d)}z"
    if number == 5:
        return f"M{p(x)} {p(y + 1.2 * r)}l{p(1.2 * r)} {p(-2.1 * r)}h{p(-2.4 * r)}z"
    if number == 7:
        return f"M{p(x - 1.3 * r)} {p(y - third)}h{p(2.6 * r)}v{p(2 * third)}h{p(-2.6 * r)}z"
    arm, back = p(r), p(-r)
    plus = (
        f"M{p(x - third)} {p(y - third - r)}h{p(2 * third)}v{arm}h{arm}v{p(2 * third)}h{back}v{arm}h{p(-2 * third)}"
        f"v{back}h{back}v{p(-2 * third)}h{arm}z"
    )
    return plus if number == 6 else _cross(x, y, 1.2 * r, 0.5 * r)


def _cross(x: float, y: float, r: float, w: float) -> str:
    corners = (
        (-r, -r + w),
        (-r + w, -r),
        (0, -w),
        (r - w, -r),
        (r, -r + w),
        (w, 0),
        (r, r - w),
        (r - w, r),
        (0, w),
        (-r + w, r),
        (-r, r - w),
        (-w, 0),
    )
    return "M" + "L".join(f"{px(x + dx)} {px(y + dy)}" for dx, dy in corners) + "z"
