"""Names of rows: beside what is drawn of them, or above it on a narrow sheet."""

from collections.abc import Iterable
from dataclasses import dataclass

from orrery.drawing.paper import SIDE_PX, is_narrow, label, sheet_px
from orrery.drawing.words import clean, width_px

_ABOVE_PX = 17.0
_MAX_SHARE = 0.25
"""Largest share of a narrow sheet that names take beside their rows."""


@dataclass(frozen=True, slots=True)
class RowNames:
    """Where rows begin, and the room that each has above it for its name."""

    left_px: float
    above_px: float
    gap_px: float

    def label(self, name: str, top_px: float, baseline_px: float, kind: str = "") -> str:
        """The name of the row whose drawing begins at ``top_px`` and whose text stands at ``baseline_px``."""
        if self.above_px:
            return label(SIDE_PX, top_px - 4, name, kind, sheet_px() - 2 * SIDE_PX)
        room = self.left_px - self.gap_px
        return label(room, baseline_px, name, f"{kind} e".strip(), room - SIDE_PX)


def row_names(names: Iterable[str], max_px: float, gap_px: float, more_px: float = 2.0) -> RowNames:
    """Names at most ``max_px`` wide, ``gap_px`` before the rows."""
    widest = max((width_px(clean(name)) for name in names), default=0.0)
    if is_narrow() and widest > _MAX_SHARE * sheet_px():
        return RowNames(SIDE_PX, _ABOVE_PX, gap_px)
    return RowNames(SIDE_PX + min(max_px, widest) + gap_px + more_px, 0.0, gap_px)
