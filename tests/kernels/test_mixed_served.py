"""Products of two widths and a host's library calls inside a step: batches, rows of nothing, roofs by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.kernels.block_exchange import in_cluster, through_memory
from orrery.kernels.host import rule as host
from orrery.kernels.lowbit import mixed_served
from orrery.kernels.lowbit.mixed_blocks import MixedGemm, mixed_gemm_s, roof_s
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm
from orrery.kernels.resolve import find
from orrery.kernels.spatial import passes

A100 = get_device("a100-sxm-80gb")


def test_a_served_product_of_two_widths():
    """4 x 8 x 256 with half of two blocks wide, three times, beside a product of no rows.

    Inputs of 4 and of 8 bits are 6 on average; weights of 4 bits have a 16-bit scale for 128; results have 16 bits.
    """
    op = Gemm(m=np.array([4, 0]), n=8, k=256, batch=3, format="int4+int8", wide_frac=0.5)
    found = mixed_served.predict(op, A100)
    one = MixedGemm(m=4, n=8, k=256, wide_frac=0.5)
    moved = (4 * 256 * 6 + 8 * 256 * (4 + 16 / 128) + 4 * 8 * 16) / 8
    eight = A100.dense_flops_per_s["int8"]
    compute_s = 4 * 8 * 256 * (1 / (2 * eight) + 1 / eight)  # half of two operations at either rate
    assert found.flops.tolist() == [3 * 2 * 4 * 8 * 256, 0]
    assert found.bytes == pytest.approx([3 * moved, 0])
    assert found.memory_s == pytest.approx([3 * moved / A100.memory_bandwidth_bytes_per_s, 0])
    assert found.compute_s == pytest.approx([3 * compute_s, 0])
    assert roof_s(one, A100) == pytest.approx(compute_s)
    assert found.time_s == pytest.approx([3 * mixed_gemm_s(one, A100), 0])
    assert found.overhead_s.tolist() == [0, 0]
    assert mixed_served.calibration(op, A100) == find(A100, "gemm", "int8")


def test_blocks_are_no_wider_than_the_product():
    """64 channels are one block, of which 0.6 rounds to the whole."""
    found = mixed_served.predict(Gemm(m=2, n=8, k=64, format="int4+int8", wide_frac=0.6), A100)
    assert found.bytes == (2 * 64 * 8 + 8 * 64 * (4 + 16 / 64) + 2 * 8 * 16) / 8


@pytest.mark.parametrize(
    ("device", "has"), [("a100-sxm-80gb", True), ("h100-sxm", False), ("epyc-9654", False), ("tpu-v5e", False)]
)
def test_who_multiplies_whole_numbers_of_both_widths(device, has):
    """Four-bit units are known of Ampere; Hopper has none, and a processor's lanes are no such units."""
    assert mixed_served.has_units(get_device(device)) is has


ATTENTION = {"batch": 1, "context_tokens": 8, "num_heads": 1, "num_kv_heads": 1, "head_size": 4, "kv_format": "bf16"}


@pytest.mark.parametrize(
    ("op", "key"),
    [
        (Gemm(m=1, n=1, k=1, format="fp32"), ("gemm", "fp32", "e")),
        (AttentionPrefill(**ATTENTION, query_tokens=8, format="fp32"), ("attention_prefill", "fp32+bf16", "e")),
        (AttentionDecode(**ATTENTION, format="fp32"), ("attention_decode", "fp32+bf16", "e")),
        (Elementwise(kind="add", tokens=1, width=1, format="fp32"), ("elementwise_add", "fp32", "e")),
    ],
)
def test_where_constants_of_a_library_call_are_filed(op, key):
    assert host.key(op, "e") == key
    assert host.serves(op, SimpleNamespace(calibrations={key: SimpleNamespace(law="host")}), "e")
    assert not host.serves(op, SimpleNamespace(calibrations={key: SimpleNamespace(law="gemm")}), "e")
    assert not host.serves(op, SimpleNamespace(calibrations={}), "e")


def processor(flops, **constants):
    """A processor of round numbers with constants for products and sums in FP32."""
    known = SimpleNamespace(law="host", constants={"direct_products": 480.0, "near_bytes": 256.0, **constants})
    return SimpleNamespace(
        memory_bandwidth_bytes_per_s=1000.0,
        vector_flops_per_s=100.0,
        last_level_cache_bytes=4096.0,
        peak_flops_per_s=lambda rates: (rates[0], flops),
        calibrations={("gemm", "fp32", ""): known, ("elementwise_add", "fp32", ""): known},
    )


def test_a_library_call_is_the_sum_of_its_terms():
    """4 x 8 x 15: a call of 7 s, 960 operations at half of 200 a second, a weight of 480 bytes read at thrice the time
    of the bandwidth."""
    op = Gemm(m=4, n=8, k=15, format="fp32")
    constants = dict.fromkeys(("direct_cache_ratio", "pack_memory_ratio", "pack_cache_ratio"), 1.0)
    constants |= {"vector_memory_ratio": 1.0, "vector_cache_ratio": 1.0}
    device = processor(200.0, call_s=7.0, product_frac=0.5, direct_memory_ratio=1 / 3, **constants)
    found = host.predict(op, device, "")
    assert float(found.time_s) == pytest.approx(7 + 960 / 200 / 0.5 + 3 * 480 / 1000)
    assert (float(found.compute_s), float(found.overhead_s)) == (pytest.approx(4.8), 7.0)
    assert float(found.bytes) == 4 * (60 + 120 + 32)
    assert float(found.memory_s) == pytest.approx(848 / 1000)
    fast = processor(200.0, call_s=0.0, product_frac=1e9, direct_memory_ratio=1e9, **constants)
    assert float(host.predict(op, fast, "").time_s) == pytest.approx(4.8)  # never sooner than its units allow


def test_nothing_replays_the_call_of_element_wise_work():
    op = Elementwise(kind="add", tokens=5, width=1, format="fp32")
    found = host.predict(op, processor(200.0, call_s=7.0, stream_near_ratio=0.5, stream_far_ratio=1.0), "")
    assert float(found.overhead_s) == 0.0
    assert float(found.time_s) == pytest.approx(7 + 60 / 1000 / 0.5)


def test_data_that_processors_hand_to_each_other():
    """1000 bytes at 32 a cycle: once in a cluster, stored and loaded through memory."""
    near, far = in_cluster(1000.0, 180.0, 32.0), through_memory(1000.0, 600.0, 32.0)
    assert (near.num_latency_cycles, near.num_moving_cycles, near.num_cycles) == (180, 31.25, 211.25)
    assert (far.num_latency_cycles, far.num_moving_cycles, far.num_cycles) == (1200, 62.5, 1262.5)


def test_the_side_of_an_array_is_what_its_peak_says():
    """16 x 16 multiply-adds a cycle at 10 Hz are 5120 a second; the larger of both 16-bit rates counts."""
    device = SimpleNamespace(
        name="array",
        generation="square-array",
        dense_flops_per_s={"fp16": 5120.0, "bf16": 80.0},
        compute_clock_hz=10.0,
        last_level_cache_bytes=256.0,
        memory_bandwidth_bytes_per_s=99.0,
    )
    found = passes.array_of(device)
    assert (found.num_side, found.clock_hz, found.buffer_bytes) == (16, 10.0, 256.0)
    assert found.memory_bandwidth_bytes_per_s == 99.0
    with pytest.raises(OutOfRange, match="h100-sxm is hopper"):
        passes.array_of(get_device("h100-sxm"))
