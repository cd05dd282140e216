"""QFX: what a toy network loses with trained and with fixed binary points; integers that give the same numbers."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from orrery.base.experiment import Row
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.experiments.fixed_perceptron import FixedPerceptron, with_points
from orrery.numerics.experiments.networks import start
from orrery.numerics.experiments.steps import Pass
from orrery.numerics.experiments.studies.qfx import EXPERIMENT, NUM_POWERS, RULE_OF, WIDTHS

LEARNED = "learned"
BASELINES = {"trained-points": "least error", "no-overflow": "no overflow"}
"""Setting of points in a claim's baseline."""

POINTS = (4, 6, 4, 6, 4)
"""Bits after the point in the circuit that is compared, eight bits wide."""

NUM_INPUTS = 1000


def predict(paper: Paper) -> Iterator[Prediction]:
    """Losses, then bits."""
    setup = paper.setups["toy"]
    rows = rows_of()
    for claim, baseline in BASELINES.items():
        yield loss_ratio(setup, rows, claim, baseline)
    for claim, num_powers in (("same-numbers", 0), ("multiplier-free", NUM_POWERS)):
        yield Prediction(
            claim=claim,
            predicted=equal_frac(num_powers),
            because=f"outputs of {NUM_INPUTS} inputs from whole numbers and shifts alone, against casts of floats",
        )


@cache
def rows_of() -> tuple[Row, ...]:
    """Losses of every width and every way to set points."""
    return EXPERIMENT()


def loss_ratio(setup: Setup, rows: tuple[Row, ...], claim: str, baseline: str) -> Prediction:
    """Held-out loss of trained points over that of the baseline's, geometric mean over widths."""
    losses = {(r["width_bits"], r["points"]): float(r["loss"]) for r in rows}
    widths = [int(bits) for bits in setup.numbers("bits_swept")]
    ratios = {bits: losses[bits, LEARNED] / losses[bits, baseline] for bits in widths}
    return Prediction(
        claim=claim,
        predicted=float(np.prod(list(ratios.values())) ** (1.0 / len(ratios))),
        because=f"held-out loss with trained points over points of {baseline}: "
        + ", ".join(f"{ratio:.2f} at {bits} bits" for bits, ratio in ratios.items()),
    )


def equal_frac(num_powers: int) -> float:
    """How many outputs of the circuit are those of the emulated network, to the bit."""
    network = FixedPerceptron(widths=WIDTHS, width_bits=8, num_powers=num_powers)
    weights = with_points(start(network, np.random.default_rng(0)), POINTS)
    x = np.random.default_rng(1).standard_normal((NUM_INPUTS, WIDTHS[0]))
    emulated = network.step(Pass(weights=weights, rule_of=RULE_OF, rng=np.random.default_rng(2)))(x)[0]
    equal = np.equal(network.circuit(weights).output(x), emulated)
    return float(np.count_nonzero(equal) / equal.size)
