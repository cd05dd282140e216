"""Ways to spend that nothing cheaper beats, and the cheapest that is good enough."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Way = TypeVar("Way")


def frontier(ways: Iterable[Way], cost: Callable[[Way], float], worth: Callable[[Way], float]) -> list[Way]:
    """The ways that no cheaper or equally cheap one reaches, cheapest first."""
    best = list[Way]()
    for way in sorted(ways, key=lambda w: (cost(w), -worth(w))):
        if not best or worth(way) > worth(best[-1]):
            best.append(way)
    return best


def cheapest(ways: Sequence[Way], worth: Callable[[Way], float], goal: float) -> Way | None:
    """The first of a frontier that is worth as much as the goal; None where none is."""
    return next((way for way in ways if worth(way) >= goal), None)
