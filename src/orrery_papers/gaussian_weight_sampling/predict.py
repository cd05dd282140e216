"""Gaussian weight sampling: one more pass over the weights of a step, and which floats keep the noise."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.numerics.codec.rounding import round_to
from orrery.numerics.names import get_element
from orrery.numerics.parse import parse_format
from orrery_papers.shared.trained import trained, training_job, training_layout

PASSES = 3.0
"""Weights read, samples written, gradients of the samples read for the widths of the noise."""

MAX_NOISE_BITS = 24


def predict(paper: Paper) -> Iterator[Prediction]:
    """Traffic over a step's time, bytes of the samples, and widths."""
    setup = paper.setups["llama2-1b"]
    job = training_job(setup)
    run = trained(job, training_layout(setup, job.cluster.num_devices))
    sample_bytes = parse_format(setup.word("weights_format")).bytes_per_element
    moved = job.model.num_parameters * PASSES * sample_bytes
    noise_s = job.global_batch / run.layout.micro_batch * moved / job.cluster.device.memory_bandwidth_bytes_per_s
    yield Prediction(
        claim="overhead", predicted=noise_s / run.step_s,
        because=f"{moved / 1e9:.2f} GB for every micro-batch, {noise_s * 1e3:.0f} ms of a step of {run.step_s:.2f} s",
        differs="tokens of a step, which the abstract leaves open, set the ratio; so does the rate of such kernels",
    )  # fmt: skip
    yield Prediction(claim="memory", predicted=sample_bytes, because="the sampled weights, kept for the backward pass")
    noise = paper.setups["noise"]
    bits = noise.number("num_noise_bits")
    words = [word.strip() for word in noise.word("formats_swept").split(",")]
    retained = {word: most_noise_bits(word) for word in words}
    text = ", ".join(f"{word} {most} bits" for word, most in retained.items())
    able = [get_element(word).bits for word, most in retained.items() if most >= bits]
    yield Prediction(claim="lowest-width", predicted=float(min(able)), because=f"noise that survives the cast: {text}")
    yield Prediction(
        claim="noise-width", predicted=float(retained["bf16"]), because="finer noise is lost on some weights"
    )


def most_noise_bits(word: str) -> int:
    """The finest noise, in bits, that a block's largest weight still shows after the cast, whichever way it goes.

    The weight is any number of the format between two powers of two; the noise is one step of its own size.
    """
    values = get_element(word).values()
    largest = values[(values > 1.0) & (values < 2.0)]
    for bits in range(MAX_NOISE_BITS, 0, -1):
        step = largest * 2.0 ** (1.0 - bits)
        if all(np.all(round_to(largest + way * step, word) != largest) for way in (-1.0, 1.0)):
            return bits
    return 0
