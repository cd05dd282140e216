"""KurTail: devices that learning rotations of a 70B model needs, and four-bit errors after a learned rotation."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.error import compare
from orrery.numerics.quantise import round_trip
from orrery.numerics.rotations.hadamard import signs, transform
from orrery.numerics.rotations.learned import lighter_tails
from orrery.scenario.quantize import quantize
from orrery_papers.shared.tails import kurtosis

Floats = NDArray[np.float64]

FITTED = 64
"""Rows and columns of the drawn matrix that the command is asked about beside the model."""

FACTORS, FREEDOM, NOISE = 8, 3.0, 0.3
"""Factors, degrees of freedom and noise of the drawn activations: see the set-up."""

NUM_STEPS, TURN_RATIO, DRAWS = 100, 0.1, 5


def predict(paper: Paper) -> Iterator[Prediction]:
    """Devices, then errors."""
    yield from devices(paper.setups["llama-3-70b"])
    learned, drawn, tails = errors(paper.setups["activations"])
    yield Prediction(
        claim="error-over-hadamard",
        predicted=learned / min(drawn),
        because=f"root mean square error of 4-bit tokens that were not seen, over the best of {DRAWS} random Hadamard "
        f"rotations; kurtosis {tails[0]:.1f} as they are, {tails[1]:.2f} after a random and {tails[2]:.2f} after the "
        "learned rotation",
    )


def devices(setup: Setup) -> Iterator[Prediction]:
    """How many hold what learning keeps."""
    fit = quantize(
        "normal",
        formats="int4",
        rows=FITTED,
        columns=FITTED,
        recipes="kurtail",
        model=setup.word("model"),
        device=setup.word("device"),
        calibration_tokens=int(setup.number("num_calibration_tokens")),
        sequence_tokens=int(setup.number("sequence_tokens")),
    ).fitting
    assert fit
    yield Prediction(
        claim="devices-layer-wise",
        predicted=float(fit.layer_wise_devices),
        because=f"one layer, its rotation and the activations that it has seen: {fit.layer_wise_bytes / 1e9:.0f} GB",
    )
    assert fit.end_to_end_devices
    yield Prediction(
        claim="devices-end-to-end",
        predicted=float(fit.end_to_end_devices),
        because="the model shared out evenly, a layer that is rotated in 64 bits, inputs of layers and logits: "
        f"{fit.end_to_end_bytes / 1e9:.0f} GB on each",
    )


def errors(setup: Setup) -> tuple[float, list[float], tuple[float, float, float]]:
    """Errors of the learned rotation and of random ones; kurtosis as it is, after a random and the learned one."""
    width, tokens = int(setup.number("num_hidden")), int(setup.number("num_calibration_tokens"))
    seen, new = activations(width, 2 * tokens).reshape(2, tokens, width)
    rotation = lighter_tails(seen, num_steps=NUM_STEPS, turn_ratio=TURN_RATIO, seed=0)
    format = f"int{int(setup.number('num_activation_bits'))}sym/row"

    def error_frac(x: Floats) -> float:
        return compare(x, round_trip(x, format)).relative_error_frac

    random = [np.asarray(transform(new * signs(width, s)), dtype=np.float64) for s in range(DRAWS)]
    tails = [float(kurtosis(x, axis=1).mean()) for x in (new, random[0], new @ rotation)]
    return error_frac(new @ rotation), [error_frac(x) for x in random], (tails[0], tails[1], tails[2])


def activations(width: int, tokens: int, seed: int = 0) -> Floats:
    """Tokens of a few heavy-tailed factors, spread over channels of different sizes, and noise."""
    rng = np.random.default_rng(seed)
    mix = rng.standard_normal((FACTORS, width)) * np.exp(rng.standard_normal(width))
    return rng.standard_t(FREEDOM, (tokens, FACTORS)) @ mix + NOISE * rng.standard_normal((tokens, width))
