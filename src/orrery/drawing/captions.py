"""Sentences about a chart that every chart needs."""

from collections.abc import Iterable

from orrery.drawing.axis import Axis
from orrery.drawing.words import counted


def left_out(number: int) -> str:
    """How many values have no place."""
    verb = "is" if number == 1 else "are"
    return (
        f"{counted(number, 'value')} {verb} left out: not finite, or not positive on a scale of powers"
        if number
        else ""
    )


def not_shown(number: int, whole: int, what: str) -> str:
    """How many things are not drawn because there are too many."""
    return f"{number:,} of {whole:,} {what} are not drawn" if number > 0 else ""


def span(axis: Axis, values: Iterable[float]) -> str:
    """``from 1 ms to 2 s``, or the one value that there is."""
    inside = list(values)
    low, high = axis.describe(min(inside)), axis.describe(max(inside))
    return f"from {low} to {high}" if low != high else f"at {low}"
