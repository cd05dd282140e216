"""Fills of areas that differ in their hatch as well as in their colour."""

import math
import re
from collections.abc import Iterable, Iterator

from orrery.drawing.palette import NUM_HUES
from orrery.drawing.paper import SCOPE, hue, path, rect
from orrery.drawing.words import px

_DRAWN = ("", "M-1 7L7 -1", "M1.5 0v6M4.5 0v6", "M-1 -1L7 7", "M0 1.5h6M0 4.5h6")
"""Plain, rising, upright, falling, level."""
_STEP_PX = 6.0
_AREAS = re.compile(r'<g class="(orr-k\d+)" fill="url\(#[\w-]+?h(\d+)\)">(.*?)</g>', re.S)
_RECT = re.compile(r'(?:<rect x="|M)(-?[\d.]+)(?:" y="| )(-?[\d.]+)(?:" width="|h)([\d.]+)(?:" height="|v)([\d.]+)')


def hatches(numbers: Iterable[int]) -> str:
    """The patterns of the kinds with these numbers; the first kind's is plain and needs none."""
    return "".join(
        f'<pattern id="{_name(n)}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f"{path('M0 0h6v6h-6z', f'{hue(n)} f')}{path(_DRAWN[n % len(_DRAWN)], 't')}</pattern>"
        for n in numbers
        if n % len(_DRAWN)
    )


def fill(number: int) -> str:
    """The attributes of a group of areas of one kind."""
    plain = not number % len(_DRAWN)
    return f'class="orr-{hue(number)}{" orr-f" if plain else ""}"' + ("" if plain else f' fill="url(#{_name(number)})"')


def key(number: int) -> str:
    """A kind's square in a legend."""
    return f"<g {fill(number)}>{rect(-6, -6, 12, 12, '')}</g>"


def as_lines(drawing: str) -> str:
    """The drawing with each hatch as lines of its own: browsers print a pattern as a picture of the whole plot."""
    return _AREAS.sub(_lined, drawing)


def _lined(found: re.Match[str]) -> str:
    colour, number, inside = found.groups()
    places = (tuple(map(float, place)) for place in _RECT.findall(inside))
    lines = "".join(line for place in places for line in _lines(int(number) % len(_DRAWN), *place))
    return f'<g class="{colour} orr-f">{inside}</g>{path(lines, "t")}'


def _lines(drawn: int, x: float, y: float, width: float, height: float) -> Iterator[str]:
    """The lines of a pattern that lie in a rectangle, where the pattern would have them."""
    right, foot = x + width, y + height
    if drawn == 1:  # x + y is a whole number of steps
        for c in _steps(x + y, right + foot, _STEP_PX, 0.0):
            start, end = max(x, c - foot), min(right, c - y)
            if end > start:
                yield f"M{px(start)} {px(c - start)}L{px(end)} {px(c - end)}"
    elif drawn == 3:  # y - x is
        for c in _steps(y - right, foot - x, _STEP_PX, 0.0):
            start, end = max(x, y - c), min(right, foot - c)
            if end > start:
                yield f"M{px(start)} {px(start + c)}L{px(end)} {px(end + c)}"
    elif drawn == 2:
        yield from (f"M{px(at)} {px(y)}v{px(height)}" for at in _steps(x, right, _STEP_PX / 2, 1.5))
    elif drawn == 4:
        yield from (f"M{px(x)} {px(at)}h{px(width)}" for at in _steps(y, foot, _STEP_PX / 2, 1.5))


def _steps(low: float, high: float, step: float, first: float) -> Iterator[float]:
    """Every ``first + n * step`` between two values."""
    yield from (first + n * step for n in range(math.ceil((low - first) / step), math.floor((high - first) / step) + 1))


def _name(number: int) -> str:
    return f"{SCOPE}h{number % (NUM_HUES * len(_DRAWN))}"
