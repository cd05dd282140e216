"""Fills of areas that differ in their hatch as well as in their colour."""

from collections.abc import Iterable

from orrery.drawing.palette import NUM_HUES
from orrery.drawing.paper import SCOPE, hue, path, rect

_DRAWN = ("", "M-1 7L7 -1", "M1.5 0v6M4.5 0v6", "M-1 -1L7 7", "M0 1.5h6M0 4.5h6")
"""Plain, rising, upright, falling, level."""


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


def _name(number: int) -> str:
    return f"{SCOPE}h{number % (NUM_HUES * len(_DRAWN))}"
