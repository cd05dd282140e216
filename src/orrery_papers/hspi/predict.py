"""HSPI: emulated platforms named from the last bits of their products."""

from collections.abc import Iterator
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.arithmetic.accumulation import PLATFORMS, product
from orrery_papers.hspi import fingerprint

Points = dict[str, NDArray[np.float64]]
LEARNT, NAMED = 1, 2  # seeds


def predict(paper: Paper) -> Iterator[Prediction]:
    """Accuracy on models that the classifier has not seen."""
    setup = paper.setups["emulated"]
    learnt, named = answers(setup, LEARNT), answers(setup, NAMED)
    white, black = (
        fingerprint.accuracy_frac(fingerprint.train(seen), unseen) for seen, unseen in zip(learnt, named, strict=True)
    )
    chance = 1.0 / len(learnt[0])
    yield Prediction(
        claim="white-box", predicted=white, because=f"errors in last places of {len(learnt[0])} emulated platforms"
    )
    yield Prediction(
        claim="black-box",
        predicted=black / chance,
        because=f"shares of set low bits alone name {percent(black)}, where guessing names {percent(chance)}",
        differs="emulated platforms differ in orders that leave trailing zeros; real ones also round logits to 16 bits",
    )


def answers(setup: Setup, seed: int) -> tuple[Points, Points]:
    """Shares of errors and shares of bits of every platform's answers, each of another model and other inputs."""
    names = [name.strip() for name in setup.word("platforms").split(",")]
    side, length = isqrt(int(setup.number("num_outputs"))), int(setup.number("num_contracted"))
    rng = np.random.default_rng(seed)
    errors: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    bits: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    for _ in range(int(setup.number("num_answers"))):
        x, weights = (rng.normal(size=(side, length)).astype(np.float16) for _ in range(2))
        exact = x.astype(np.float64) @ weights.astype(np.float64).T
        for name in names:
            logits = product(x, weights, PLATFORMS[name])
            errors[name].append(fingerprint.errors(logits, exact))
            bits[name].append(fingerprint.low_bits(logits))
    return {name: np.array(found) for name, found in errors.items()}, {name: np.array(f) for name, f in bits.items()}
