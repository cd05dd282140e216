"""A chart as it stands in a page: drawn for a desk and for a phone; the style sheet shows the one that fits."""

from collections.abc import Callable

from orrery.drawing.paper import drawn_at

PHONE_PX = 330.0
"""Width of a chart on a phone of 390 px."""


def at_both_widths(draw: Callable[[], str]) -> str:
    """Both drawings, the wide one first; empty where there is none."""
    wide = draw()
    if not wide:
        return ""
    with drawn_at(PHONE_PX):
        return paired(wide, draw())


def paired(wide: str, narrow: str) -> str:
    """Two drawings of one chart, of which one is seen."""
    return f'<div class="at-desk">{wide}</div><div class="on-phone">{narrow}</div>'
