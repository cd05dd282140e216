"""Pychop: rounding in every mode to custom formats, against rounding by definition in exact fractions."""

from collections.abc import Iterator
from fractions import Fraction
from math import floor, frexp

import numpy as np
from numpy.typing import NDArray

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.numerics.codec.rounding import round_to
from orrery.numerics.families.minifloat import Minifloat, read
from orrery.numerics.rounding import Rounding

Floats = NDArray[np.float64]

DIRECTED = [mode for mode in Rounding if not mode.is_drawn]
NUM_NUMBERS, NUM_DRAWS = 400, 20_000


def predict(paper: Paper) -> Iterator[Prediction]:
    """Modes, then numbers that agree, then means of random rounding."""
    setup = paper.setups["formats"]
    words = [word.strip() for word in setup.word("settings").split(",")]
    formats = [found for name in setup.word("formats_swept").split(",") if (found := read(name.strip()))]
    modes = [mode for mode in Rounding if mode in words]
    yield Prediction(claim="rounding-modes", predicted=float(len(modes)), because=f"of {', '.join(Rounding)}")
    agree = [agreement(f, mode, seed) for seed, f in enumerate(formats) for mode in DIRECTED]
    yield Prediction(
        claim="equal",
        predicted=float(np.mean(agree)),
        because=f"{len(formats)} formats, {len(DIRECTED)} modes, {NUM_NUMBERS} numbers each, halves between neighbours "
        "and numbers below the smallest normal one among them",
    )
    yield random_rounding(formats[0])


def agreement(format: Minifloat, mode: Rounding, seed: int) -> float:
    """How many numbers are rounded to the same as by definition."""
    x = numbers(format, seed)
    found = round_to(x, format, rounding=mode)
    return float(np.mean([y == float(by_definition(v, format, mode)) for v, y in zip(x, found, strict=True)]))


def numbers(format: Minifloat, seed: int) -> Floats:
    """Numbers over the format's range and below it, and halves between numbers of it."""
    rng = np.random.default_rng(seed)
    low, high = format.min_exponent - format.mantissa_bits - 2, frexp(format.highest)[1] - 1
    free = np.exp2(rng.uniform(low, high, NUM_NUMBERS // 2)) * rng.choice([-1.0, 1.0], NUM_NUMBERS // 2)
    below = round_to(free, format, rounding=Rounding.DOWN)
    halves = (below + round_to(free, format, rounding=Rounding.UP)) / 2.0
    return np.concatenate([free, halves])


def by_definition(x: float, format: Minifloat, mode: Rounding) -> Fraction:
    """The neighbour of ``x`` that the mode names, from exact fractions of the step around it."""
    size, exponent = Fraction(abs(x)), frexp(abs(x))[1] - 1
    places = format.mantissa_bits if format.has_subnormals or exponent >= format.min_exponent else 0
    step = Fraction(2) ** (max(exponent, format.min_exponent) - places)
    steps = floor(size / step)
    rest, half = size / step - steps, Fraction(1, 2)
    grows = {
        Rounding.NEAREST_EVEN: rest > half or (rest == half and steps % 2 == 1),
        Rounding.NEAREST_AWAY: rest >= half,
        Rounding.NEAREST_ZERO: rest > half,
        Rounding.ODD: rest > 0 and steps % 2 == 0,
        Rounding.UP: rest > 0 and x > 0,
        Rounding.DOWN: rest > 0 and x < 0,
        Rounding.TOWARD_ZERO: False,
    }[mode]
    return (steps + grows) * step * (1 if x >= 0 else -1)


def random_rounding(format: Minifloat) -> Prediction:
    """The mean of many draws of one number, rounded by distance; and how often equal chances go up."""
    x, rng = np.full(NUM_DRAWS, 1.03), np.random.default_rng(0)
    drawn = [round_to(x, format, rounding=mode, rng=rng) for mode in (Rounding.STOCHASTIC, Rounding.STOCHASTIC_EQUAL)]
    by_distance, by_coin = drawn
    ups = float(np.mean(by_coin > x))
    return Prediction(
        claim="unbiased",
        predicted=float(by_distance.mean() / x[0]),
        because=f"mean of {NUM_DRAWS} draws by distance; equal chances go up {percent(ups, 1)} of the time",
    )
