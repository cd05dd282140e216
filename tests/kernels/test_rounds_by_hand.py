"""Loads of experts dealt out, recurrences beside a cache, one-bit passes: small sums worked out by hand."""

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.kernels.latent.absorb import _ready
from orrery.kernels.lowbit import served
from orrery.kernels.moe.routing import _power_law
from orrery.kernels.ops import Gemm, LatentPrefill
from orrery.kernels.recurrent import _kernel as recurrent


@pytest.mark.parametrize(
    ("tokens", "topk", "loads"),
    [
        # 20 assignments to 4 experts: between 1 and 0.8 x 10: 8, 4.5, 2.75, 1, of 16.25 in all
        (10.0, 2, [10, 6, 3, 1]),
        # 2 tokens: between 0.01 and 2: 2, 1.005, 0.5075, 0.01 of 3.5225: 5, 2, 1, 0; the first two hold both tokens,
        # three more go to the others in turn, who hold no more than both
        (2.0, 4, [2, 2, 2, 1]),
        # no more assignments than experts: the same shares of 3
        (3.0, 1, [2, 1, 0, 0]),
        (4.0, 1, [2, 1, 1, 0]),
    ],
)
def test_loads_by_a_power_of_their_rank(tokens, topk, loads):
    """Without skew a load is as its draw lies between the least and the largest."""
    uniform = np.array([[1.0, 0.5, 0.25, 0.0]])
    assert _power_law(uniform, tokens, topk, 0.0)[0].tolist() == loads


CACHE = 100.0
MACHINE = np.array([1e3, 10.0, 4.0, CACHE])  # flops, bytes/s, units, cache


def found(held, ratio, edge):
    """What is left of the time: held bytes of a cache are found by 1 / (1 + (held / cache)^edge)."""
    hit = 1.0 / (1.0 + (held / CACHE) ** edge)
    return 1.0 - hit + hit / ratio


@pytest.mark.parametrize("is_cold", [True, False])
def test_a_recurrence_over_prompts(is_cold):
    """Two sequences of 128 tokens, states of 30 bytes, 3 wide, 3 heads: 60 bytes in and 60 out at half the rate, 256
    x 3 x 2 bytes in and as many out at all of it. 2 x 3 heads are two waves of 4, each of whose chunks takes 5 s."""
    c = np.array([7.0, 0.5, 1.0, 5.0, 2.0, 2.0, 4.0])
    stream = (120.0 / 0.5 + 2.0 * 256 * 3 * 2.0) / 10.0
    if not is_cold:
        stream *= found(60.0 + 2.0 * 256 * 3 * 2.0, 4.0, recurrent.STREAM_EDGE)
    chain = 5.0 * np.ceil(128 / recurrent.CHUNK_TOKENS) * 2
    work = np.hypot(stream, chain)
    got = recurrent.prefill_s(256.0, 2.0, 30.0, 3.0, 3.0, is_cold, c, MACHINE)
    assert got == pytest.approx((np.hypot(7.0, work), np.hypot(7.0, work) - work))


@pytest.mark.parametrize("is_cold", [True, False])
def test_a_recurrence_of_one_token_and_its_convolution(is_cold):
    """States of 2 x 30 bytes are read and written at half the rate; the convolution moves 50 bytes."""
    c = np.array([3.0, 0.5, 2.0, 4.0])
    work = 2.0 * 60.0 / 5.0 * (1.0 if is_cold else found(60.0, 4.0, recurrent.STATE_EDGE))
    time = np.hypot(3.0, work)
    assert recurrent.decode_s(2.0, 30.0, is_cold, c, MACHINE) == pytest.approx((time, time - work))
    work = 50.0 / 5.0 * (1.0 if is_cold else found(50.0, 4.0, recurrent.STREAM_EDGE))
    time = np.hypot(3.0, work)
    assert recurrent.convolution_s(50.0, is_cold, c, MACHINE) == pytest.approx((time, time - work))


def test_a_device_without_a_cache_finds_nothing_there():
    assert recurrent._found(50.0, 0.0, 4.0, False, 2.0) == 1.0
    assert recurrent._found(100.0, 100.0, 4.0, False, 2.0) == 1.0 - 0.5 + 0.5 / 4.0


def test_one_bit_passes_of_a_served_product():
    """2 x 8 inputs of 3 bits, 4 x 8 weights of 1 bit, 2 x 4 results of 16 bits, five times: 48 + 32 + 128 bits."""
    device = get_device("rtx-3090")
    timing = served.predict(Gemm(m=2, n=4, k=8, format="bipolar1_bipolar3", batch=5), device)
    assert timing.bytes == 5 * (48 + 32 + 128) / 8
    assert timing.flops == 5 * 2 * 2 * 4 * 8
    assert timing.memory_s == pytest.approx(timing.bytes / device.memory_bandwidth_bytes_per_s)
    assert timing.compute_s == pytest.approx(timing.flops * 3 / (8.0 * device.dense_flops_per_s["int8"]))
    assert timing.overhead_s == 0.0
    assert served.has_units(device)
    assert not served.has_units(get_device("h100-sxm"))


@pytest.mark.parametrize(
    ("device", "format", "kind"),
    [
        ("h100-sxm", "fp8", "fp8"),
        ("h100-sxm", "bf16", "bf16"),
        ("h100-sxm", "int8_weight_only", "bf16"),  # multiplied in 16 bits
        ("a100-sxm-80gb", "fp8", "bf16"),  # no such units
    ],
)
def test_products_that_move_an_up_projection_run_in_eight_bits_where_units_do(device, format, kind):
    machine = get_device(device)
    calibration, roofs, _ = _ready(machine, "query", format, "tensorrt-llm")
    assert calibration.format == kind
    assert roofs[0] == machine.dense_flops_per_s[kind]
    assert roofs[4] == {"fp8": 1.0, "bf16": 2.0}[kind]


def test_heads_of_latent_attention_are_those_of_its_paper():
    """DeepSeek-V2's: 128 features and 64 of the position in queries and keys, 128 in values."""
    op = LatentPrefill(batch=1, query_tokens=1, context_tokens=1, num_heads=1, format="bf16", kv_format="bf16")
    assert (op.head_size, op.value_head_size) == (128 + 64, 128)
