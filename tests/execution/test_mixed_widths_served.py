"""Activations of four and eight bits while serving: a product by hand, both limits, off, and what is refused."""

import numpy as np
import pytest

from orrery import estimate, kernels, plan, quantize
from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.execution.formats import dense_format
from orrery.kernels.lowbit.mixed_blocks import MixedGemm, mixed_gemm_s
from orrery.kernels.ops import Gemm

BOARD = get_device("a100-sxm-80gb")
SERVED = {"model": "llama-3-8b", "device": "a100-sxm-80gb", "weights": "int4", "kv": "int4", "batch": 256}
LENGTHS = {"input_tokens": 1024, "output_tokens": 64}
MIXED = {"activations": "int4+int8"}


def served(**settings):
    return estimate(**SERVED | LENGTHS | settings)


def test_a_product_in_a_step_by_hand():
    """8 of 32 blocks keep eight bits: 5 bits an input on average, 4 a weight and 16 for 128 of them, results of 16."""
    m, n, k = np.array([16, 1000]), 4096, 4096
    op = Gemm(m=m, n=n, k=k, format="int4_int4+int8", batch=3, wide_frac=0.25)
    found = kernels.predict(op, BOARD)
    int8 = BOARD.dense_flops_per_s["int8"]
    flops = 2.0 * m * n * k
    assert found.flops == pytest.approx(3 * flops)
    assert found.compute_s == pytest.approx(3 * flops * (0.75 / (2 * int8) + 0.25 / int8))
    moved = 3 * (m * k * 5 + n * k * 4.125 + m * n * 16) / 8
    assert found.bytes == pytest.approx(moved)
    assert found.memory_s == pytest.approx(moved / BOARD.memory_bandwidth_bytes_per_s)
    alone = [mixed_gemm_s(MixedGemm(m=int(rows), n=n, k=k, wide_frac=0.25), BOARD) for rows in m]
    assert found.time_s == pytest.approx(3 * np.array(alone))
    assert (found.time_s >= np.maximum(found.compute_s, found.memory_s)).all()


def test_no_rows_take_no_time():
    op = Gemm(m=np.array([0]), n=64, k=64, format="int4_int4+int8", wide_frac=0.5)
    assert kernels.predict(op, BOARD).time_s == [0.0]


def test_formats_that_meet_in_tiles_of_both_widths():
    assert dense_format("int4_weight_only", "int4+int8", BOARD) == "int4_int4+int8"
    assert dense_format("int4_weight_only", "bf16", BOARD) == "int4_weight_only"


def test_wider_blocks_cost_time_up_to_eight_bits_throughout():
    times = [served(**MIXED, wide_frac=f).estimate.ttft_s for f in (0.0, 0.25, 0.5, 1.0)]
    assert times == sorted(times)
    assert len(set(times)) == 4
    eight = served(weights="int4_int8").estimate
    assert times[-1] == pytest.approx(eight.ttft_s, rel=0.2)


def test_without_them_weights_are_unpacked_and_no_byte_of_the_weights_changes():
    mixed, plain = served(**MIXED, wide_frac=0.1).estimate, served().estimate
    assert mixed.memory.weights_bytes == plain.memory.weights_bytes
    assert mixed.ttft_s < 0.6 * plain.ttft_s
    assert any("four and of eight bits" in note for note in served(**MIXED, wide_frac=0.1).notes)


def test_a_plan_answers_as_the_estimate_does():
    settings = {k: v for k, v in SERVED.items() if k != "batch"} | LENGTHS | MIXED
    found = plan(**settings, wide_frac=0.1, rate=2.0, devices=1).plans[0].operation
    assert found.deployment.formats.activations == "int4+int8"
    assert found.deployment.wide_frac == 0.1


def test_the_share_of_blocks_of_ones_own_activations():
    """3 wide columns of 512 fill one of four blocks of 128 once they are sorted."""
    x = np.full((8, 512), 0.5)
    x[:, [3, 200, 401]] = 50.0
    (row,) = quantize(x, formats="int8", wide_above=6.0).results
    assert (row.wide_frac, row.wide_blocks_frac) == (3 / 512, 0.25)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (MIXED, "wide_frac: is missing"),
        (MIXED | {"wide_frac": 0.1, "weights": "bf16"}, "not bf16"),
        (MIXED | {"wide_frac": 0.1, "device": "h100-sxm"}, "none of h100-sxm are known"),
        (MIXED | {"wide_frac": 0.1, "model": "mixtral-8x7b", "tp": 2}, "experts"),
        (MIXED | {"wide_frac": 0.1, "wide_format": "bf16"}, "leave wide_format out"),
        ({"weights": "int4+int8"}, "weights: int4"),
        ({"kv": "int4+int8"}, "kv: int4"),
    ],
)
def test_what_is_refused(settings, words):
    with pytest.raises(OrreryError, match=words.replace("+", r"\+")):
        served(**settings)
