"""Training in 16-bit integers: products at twice the rate, everything else as before."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.arithmetic.dynamic_fixed_point import safe_chain
from orrery_papers.shared.convolutional import NETWORKS

PRODUCTS_OF_A_STEP = 3  # forward, gradients of inputs, gradients of weights
ACTIVATION_PASSES, NORM_PASSES = 5, 3
"""Reads and writes of a layer's results: ReLU forward (2) and backward (3); more for a norm's statistics."""
FP32_BYTES = 4.0
INTEGER_RATE_RATIO = 2.0
"""Two 16-bit products where one of 32 bits stood."""
LARGEST_CODE = 2**15 - 1


def predict(paper: Paper) -> Iterator[Prediction]:
    """The mean gain over the networks, and how many products one accumulator holds."""
    setup = paper.setups["imagenet"]
    names = [name.strip() for name in setup.word("models").split(",")]
    gains = {name: gain(setup, name) for name in names}
    yield Prediction(
        claim="throughput",
        predicted=sum(gains.values()) / len(gains),
        because=", ".join(f"{name} {found:.2f}" for name, found in gains.items()),
        differs="what lies between convolutions, and the cost of spilling accumulators, are not in the text found",
    )
    yield Prediction(
        claim="accumulator",
        predicted=float(safe_chain(LARGEST_CODE, LARGEST_CODE)),
        because="products of the largest 16-bit codes that cannot overflow 32 bits",
    )


def gain(setup: Setup, network: str) -> float:
    """Time of a picture in FP32 over that in 16-bit integers."""
    layers = list(NETWORKS[network]())
    flops = 2.0 * PRODUCTS_OF_A_STEP * sum(layer.num_multiply_adds for layer in layers)
    passed = sum(layer.num_results * (ACTIVATION_PASSES + NORM_PASSES * layer.is_normed) for layer in layers)
    multiplying = flops / (setup.number("fp32_flops_per_s") * setup.number("peak_frac"))
    between = passed * FP32_BYTES / setup.number("host_memory_bytes_per_s")
    return (multiplying + between) / (multiplying / INTEGER_RATE_RATIO + between)
