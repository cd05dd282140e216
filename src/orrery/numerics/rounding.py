"""How a number between two representable ones is settled."""

from enum import StrEnum


class Rounding(StrEnum):
    """The rounding directions of IEEE 754-2019, section 4.3, and stochastic rounding.

    Stochastic rounding goes up with the probability of the distance to the number below: unbiased, whatever the value.
    """

    NEAREST_EVEN = "nearest-even"
    NEAREST_AWAY = "nearest-away"
    TOWARD_ZERO = "toward-zero"
    UP = "up"
    DOWN = "down"
    STOCHASTIC = "stochastic"
