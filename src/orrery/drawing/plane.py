"""Two axes with their grid, ready for lines and points."""

from collections.abc import Iterable
from dataclasses import dataclass

from orrery.drawing.axis import Axis, Scale, scale
from orrery.drawing.paper import SIDE_PX, is_narrow, label, path, sheet_px
from orrery.drawing.words import px, width_px

HEIGHT_PX, _NARROW_HEIGHT_PX = 300.0, 230.0
_TICK_X_PX, _TICK_Y_PX = 72.0, 38.0


@dataclass(frozen=True, slots=True)
class Plane:
    """Both scales, what is drawn of them, and where the drawing ends."""

    x: Scale
    y: Scale
    drawn: list[str]
    foot_px: float

    def has(self, x: float, y: float) -> bool:
        """Whether a point lies inside."""
        return self.x.has(x) and self.y.has(y)


def plane(
    axes: tuple[Axis, Axis], xs: Iterable[float], ys: Iterable[float], top_px: float, right_px: float = SIDE_PX
) -> Plane:
    """The plane that holds ``xs`` and ``ys`` below ``top_px``; ``right_px`` stays free for labels."""
    top, foot = top_px + 22.0, top_px + 22.0 + (_NARROW_HEIGHT_PX if is_narrow() else HEIGHT_PX)
    y_axis = scale(axes[1], ys, foot, top)
    ticks = y_axis.ticks(_TICK_Y_PX)
    left = SIDE_PX + max((width_px(text, 11) for _, text in ticks), default=0.0) + 8.0
    along = scale(axes[0], xs, left, sheet_px() - max(right_px, SIDE_PX + 8))
    out = [label(SIDE_PX, top_px + 8, axes[1].name(), "s", sheet_px() - 2 * SIDE_PX)]
    out += [label(left - 6, y_axis.at(v) + 4, text, "n e") for v, text in ticks]
    lines = "".join(f"M{px(left)} {px(y_axis.at(v))}H{px(along.end_px)}" for v, _ in ticks)
    out.append(path(lines, "g"))
    drawn, end = foot_ticks(along, foot, SIDE_PX + 8)
    return Plane(along, y_axis, [*out, *drawn], end)


def foot_ticks(along: Scale, foot_px: float, right_px: float = SIDE_PX) -> tuple[list[str], float]:
    """The lower axis with its ticks and name, and where it ends."""
    ticks = along.ticks(_TICK_X_PX)
    out = [path(f"M{px(along.start_px)} {px(foot_px)}H{px(along.end_px)}" + _notches(along, ticks, foot_px), "a")]
    for v, text in ticks:
        half = width_px(text, 11) / 2
        at = min(max(along.at(v), half + 2), sheet_px() - half - 2)
        out.append(label(at, foot_px + 17, text, "n m"))
    out.append(label(along.end_px, foot_px + 35, along.axis.name(), "s e", along.end_px - SIDE_PX))
    return out, foot_px + 46.0


def _notches(along: Scale, ticks: list[tuple[float, str]], foot_px: float) -> str:
    return "".join(f"M{px(along.at(v))} {px(foot_px)}v4" for v, _ in ticks)
