"""Gaussian weight sampling: one more pass over the weights of a step, and which floats keep the noise."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.codec.rounding import round_to
from orrery.numerics.names import get_element
from orrery.numerics.parse import parse_format
from orrery_papers.shared.trained_by import trained

MAX_NOISE_BITS = 24


def predict(paper: Paper) -> Iterator[Prediction]:
    """Traffic over a step's time, bytes of the samples, and widths."""
    setup = paper.setups["llama2-1b"]
    sample_bytes = parse_format(setup.word("weights_format")).bytes_per_element
    at = sampled(setup)
    yield Prediction(
        claim="overhead",
        predicted=at["overhead_frac"],
        because=f"{at['sampling_s'] * 1e3:.0f} ms of a step of {at['step_s']:.2f} s: three passes over the weights for "
        "every micro-batch",
        differs="tokens of a micro-batch, which the abstract leaves open, set the ratio; so does such kernels' rate",
    )
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


def sampled(setup: Setup) -> Mapping[str, Any]:
    """``orrery train --weight-sampling gaussian`` on the set-up, at its micro-batch."""
    micro_batch = int(setup.number("num_micro_batch"))
    answer = trained(
        model=setup.word("model"),
        device=setup.word("device"),
        devices=int(setup.number("num_devices")),
        framework=setup.word("engine"),
        precision=setup.word("weights_format"),
        seq_len=int(setup.number("sequence_tokens")),
        global_batch=int(setup.number("num_global_batch")),
        micro_batch=micro_batch,
        recompute="none",
        weight_sampling="gaussian",
    )
    return next(row for row in answer.table("sampling") if row["micro_batch"] == micro_batch)


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
