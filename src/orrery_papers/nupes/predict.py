"""NUPES: errors with a searched and a learned exponent over those of even steps, and products on whole numbers."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.draws import draw
from orrery.numerics.power_exponent import (
    codes_of,
    searched_exponent,
    values_of,
)
from orrery_papers.nupes.exponent import integer_product, learned_exponent, product_table, round_trip_error

Floats = NDArray[np.floating]

TABLE_BITS = 20
"""Bits after the point of the table of products."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Both tensors, then the learned exponent, then whole numbers."""
    for name in ("bell-shaped", "heavy-tailed"):
        yield against_even(paper.setups[name])
    setup = paper.setups["heavy-tailed"]
    x, widths = tensor(setup), widths_of(setup)
    pairs = [(learned_exponent(x, bits), searched(x, bits)) for bits in widths]
    ratio = [
        np.sqrt(round_trip_error(x, bits, a) / round_trip_error(x, bits, b))
        for bits, (a, b) in zip(widths, pairs, strict=True)
    ]
    text = ", ".join(f"{a:.2f} learned and {b:.2f} searched" for a, b in pairs)
    yield Prediction(claim="learned", predicted=float(np.max(ratio)), because=f"exponents {text} at {widths} bits")
    yield whole_numbers(x, widths[0])


def against_even(setup: Setup) -> Prediction:
    """The widest ratio of errors over the widths."""
    x, found = tensor(setup), list[str]()
    ratios: list[float] = []
    for bits in widths_of(setup):
        exponent = searched(x, bits)
        ratios.append(float(np.sqrt(round_trip_error(x, bits, exponent) / round_trip_error(x, bits, 1.0))))
        found.append(f"{ratios[-1]:.2f} at {bits} bits with exponent {exponent:.2f}")
    return Prediction(claim=setup.name, predicted=max(ratios), because=f"root mean square error: {', '.join(found)}")


def whole_numbers(x: Floats, bits: int) -> Prediction:
    """Products from a table of whole numbers, over those of the numbers themselves."""
    exponent = searched(x, bits)
    half = len(x) // 2
    (a, a_scale), (b, b_scale) = codes_of(x[:half], bits, exponent), codes_of(x[half:], bits, exponent)
    found = integer_product(a, b, product_table(bits, exponent, TABLE_BITS)) * a_scale * b_scale.T / 2.0**TABLE_BITS
    exact = values_of(a, a_scale, bits, exponent) @ values_of(b, b_scale, bits, exponent).T
    return Prediction(
        claim="integers-only",
        predicted=float(np.vdot(found, exact) / np.vdot(exact, exact)),
        because=f"a table of {(2 ** (bits - 1) - 1) ** 2 + 1} whole numbers turns products of codes back; the largest "
        f"difference is {np.abs(found - exact).max() / np.abs(exact).max():.0e} of the largest product",
    )


def searched(x: Floats, bits: int) -> float:
    """The exponent with the least squared error."""
    return searched_exponent(lambda exponent: round_trip_error(x, bits, exponent))


def tensor(setup: Setup) -> Floats:
    """A drawn tensor of the set-up's law."""
    return draw(setup.word("settings"), (64, int(setup.number("num_hidden"))), 0)


def widths_of(setup: Setup) -> list[int]:
    """Widths of a code."""
    return [int(bits) for bits in setup.numbers("bits_swept")]
