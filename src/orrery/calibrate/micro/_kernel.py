# pyright: basic
"""A pointer chase: each step reads where the next one is."""

from orrery.base.compiled import Ints, compiled


@compiled
def chased(follows: Ints, start: int, steps: int) -> int:
    """The place after ``steps`` steps from ``start``."""
    place = start
    for _ in range(steps):
        place = follows[place]
    return place
