"""Bipolar weights and activations while serving: passes by hand, off, where nothing is gained, and what is refused."""

import numpy as np
import pytest

from orrery import estimate, kernels
from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.execution.batch import decodes_of
from orrery.execution.formats import dense_format
from orrery.execution.step import step
from orrery.kernels.lowbit.one_bit import one_bit_gemm_s
from orrery.kernels.ops import Gemm
from orrery.numerics.registry import get_format

BOARD = get_device("rtx-3090")
SERVED = {"model": "llama-2-7b", "device": "rtx-3090", "weights": "bipolar2", "batch": 1, "input_tokens": 512}
MORE = {"output_tokens": 64}


def asked(**settings):
    return estimate(**SERVED | MORE | settings)


def test_a_product_in_a_step_by_hand():
    """2 x 4 passes at eight times the INT8 rate (Ampere); 4 bits of inputs, 2 of weights, results of 16 bits."""
    m, n, k = np.array([16, 4096]), 4096, 4096
    found = kernels.predict(Gemm(m=m, n=n, k=k, format="bipolar2_bipolar4", batch=3), BOARD)
    rate = 8.0 * BOARD.dense_flops_per_s["int8"]
    assert found.flops == pytest.approx(3 * 2.0 * m * n * k)
    assert found.compute_s == pytest.approx(3 * 8 * 2.0 * m * n * k / rate)
    moved = 3 * (m * k * 4 + n * k * 2 + m * n * 16) / 8
    assert found.bytes == pytest.approx(moved)
    assert found.memory_s == pytest.approx(moved / BOARD.memory_bandwidth_bytes_per_s)
    assert found.time_s == pytest.approx(3 * one_bit_gemm_s(m, n, k, 2, 4, BOARD))
    assert (found.time_s >= np.maximum(found.compute_s, found.memory_s)).all()


def test_formats_that_meet_bit_by_bit():
    assert dense_format("bipolar2", "bipolar4", BOARD) == "bipolar2_bipolar4"
    assert dense_format("bipolar2", "bf16", BOARD) == "bipolar2"
    assert dense_format("bipolar2/128:fp16", "bipolar2", BOARD) == "bipolar2/128:fp16"
    assert get_format("bipolar3_bipolar1").bits_per_element == 3


def test_experts_are_unpacked():
    """A step of eight sequences: what experts take is the same with both, what attention's products take is not."""
    sparse = {"model": "mixtral-8x7b", "device": "a100-sxm-80gb"}
    found = [asked(**sparse, **x).estimate.deployment for x in ({}, {"activations": "bipolar2"})]
    steps = [{p.name: (p.op, float(p.time_s[0])) for p in step(d, decodes_of(np.array([8]), 512)).parts} for d in found]
    experts = [{name: s for name, (op, s) in one.items() if op == "moe"} for one in steps]
    assert experts[0]
    assert experts[0] == experts[1]
    assert steps[0]["qkv"] != steps[1]["qkv"]


def test_narrow_activations_quicken_prompts_and_more_bits_lose_it():
    plain, *narrow = (asked(**x).estimate for x in ({}, *({"activations": f"bipolar{bits}"} for bits in (2, 4, 8))))
    times = [x.ttft_s for x in narrow]
    assert times == sorted(times)
    assert times[0] < 0.4 * plain.ttft_s
    assert plain.memory.weights_bytes == narrow[0].memory.weights_bytes
    eight = asked(weights="bipolar8", activations="bipolar8").estimate
    assert eight.ttft_s > asked(weights="int8", activations="int8").estimate.ttft_s


def test_every_answer_says_what_becomes_of_the_activations():
    def notes(**settings):
        return " ".join(n for n in asked(**settings).notes if n.startswith("activations"))

    assert "bit by bit on one-bit units" in notes(activations="bipolar2")
    assert "not used in products" in notes(activations="int8")
    assert "what bipolar2 weights run with" in notes()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "h100-sxm", "activations": "bipolar2"}, "none of h100-sxm are known"),
        ({"activations": "bipolar9"}, "bipolar9"),
    ],
)
def test_what_is_refused(settings, words):
    with pytest.raises(OrreryError, match=words):
        asked(**settings)
