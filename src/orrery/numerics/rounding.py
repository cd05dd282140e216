"""Rounding of a number between two representable ones."""

from enum import StrEnum


class Rounding(StrEnum):
    """The rounding directions of IEEE 754-2019, section 4.3, and others that arithmetic units have.

    Stochastic rounding goes away from zero with the probability of the distance from the number nearer to it:
    unbiased, whatever the value. With equal chances it tosses a coin. Odd takes, of two neighbours, the one whose last
    bit is set, so that a second rounding to fewer bits does no harm.
    """

    NEAREST_EVEN = "nearest-even"
    NEAREST_AWAY = "nearest-away"
    TOWARD_ZERO = "toward-zero"
    UP = "up"
    DOWN = "down"
    NEAREST_ZERO = "nearest-zero"
    ODD = "odd"
    STOCHASTIC = "stochastic"
    STOCHASTIC_EQUAL = "stochastic-equal"

    @property
    def is_drawn(self) -> bool:
        """Whether it takes random numbers."""
        return self in (Rounding.STOCHASTIC, Rounding.STOCHASTIC_EQUAL)
