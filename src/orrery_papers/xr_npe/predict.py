"""XR-NPE: operands of four and eight bits by layer, from the errors that each format makes on drawn layers."""

from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.draws import draw
from orrery.numerics.error import compare
from orrery.numerics.quantise import as_format, round_trip
from orrery_papers.shared.layer_costs import words

WIDE_BITS = 16.0
KINDS = ("weights", "normal", "laplace", "student_t")
SHAPE = (64, 1024)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The least hurt layers take the better four-bit format, the others the eight-bit posit."""
    setup = paper.setups["engine"]
    errors = errors_db(setup)
    narrow = max(("e2m1", "posit4_1"), key=lambda name: float(np.mean(errors[name])))
    is_narrow = lightest(errors[narrow], setup.number("narrow_layers_frac"))
    bits = np.where(is_narrow, as_format(narrow).element_bits, as_format("posit8_0").element_bits)
    table = ", ".join(f"{name} {np.mean(values):.1f} dB" for name, values in errors.items())
    yield Prediction(
        claim="intensity",
        predicted=WIDE_BITS / float(bits.mean()),
        because=f"16 bits over a mean of {bits.mean():g} bits an operand; mean errors: {table}",
        differs="the share of four-bit layers is assumed; all of them would give 4, none 2",
    )


def errors_db(setup: Setup) -> dict[str, list[float]]:
    """Signal over noise of every drawn layer in every format."""
    layers = [
        draw(kind, SHAPE, seed) for seed, kind in enumerate(islice(cycle(KINDS), int(setup.number("num_layers"))))
    ]
    return {name: [error_db(x, name) for x in layers] for name in words(setup.word("formats_swept"))}


def error_db(x: np.ndarray, name: str) -> float:
    """SQNR (dB) of one layer: floats by rows as wide as their range, posits about one, where they are finest."""
    if name.startswith("posit"):
        size = np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True))
        return compare(x / size, round_trip(x / size, f"{name}/none")).sqnr_db
    return compare(x, round_trip(x, f"{name}/row")).sqnr_db


def lightest(quality_db: list[float], share: float) -> np.ndarray:
    """Which layers are in the share that loses least."""
    order = np.argsort(np.argsort(-np.asarray(quality_db), kind="stable"), kind="stable")
    return order < round(share * len(quality_db))
