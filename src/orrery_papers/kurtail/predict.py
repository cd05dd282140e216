"""KurTail: devices that learning rotations of a 70B model needs, and four-bit errors after a learned rotation."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.rotation_memory import devices_end_to_end, end_to_end, layer_wise
from orrery.numerics.error import compare
from orrery.numerics.quantise import round_trip
from orrery.numerics.rotations.hadamard import signs, transform
from orrery.numerics.rotations.learned import lighter_tails
from orrery.numerics.rotations.tails import kurtosis

Floats = NDArray[np.float64]

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
    model, have = get_model(setup.word("model")), get_device(setup.word("device")).memory_capacity_bytes
    alone = layer_wise(model, setup.number("num_calibration_tokens")).total_bytes
    yield Prediction(
        claim="devices-layer-wise",
        predicted=float(np.ceil(alone / have)),
        because=f"one layer, its rotation and the activations that it has seen: {alone / 1e9:.0f} GB",
    )
    tokens = int(setup.number("sequence_tokens"))
    need = {n: end_to_end(model, tokens, n).total_bytes / 1e9 for n in (1, 2, 4)}
    yield Prediction(
        claim="devices-end-to-end",
        predicted=float(devices_end_to_end(model, tokens, have, int(setup.number("num_devices_per_node")))),
        because="the model shared out, a layer that is rotated in 64 bits, inputs of layers and logits: "
        + ", ".join(f"{gb:.0f} GB on each of {n}" for n, gb in need.items()),
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
