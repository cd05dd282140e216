"""Dense products: the kernel says what a slow, obvious reading of the formula says, and answers stay sane."""

import math
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.cost import Spread
from orrery.catalog.devices import get_device
from orrery.evidence.split import TEST, sides
from orrery.evidence.tables import read_table
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.gemm import _kernel as kernel
from orrery.kernels.gemm import explain, predict
from orrery.kernels.gemm.machine import constants_vector, machine_vector
from orrery.kernels.gemm.tiles import TILE_SETS, tile_set
from orrery.kernels.ops import Gemm
from orrery.numerics.registry import get_format

DEVICES = ("h100-sxm", "b200", "l40s", "a100-sxm-80gb")
CONSTANTS = {
    "tile_set": 0.0,
    "max_splits": 16.0,
    "min_rows": 0.0,
    "peak_frac": 0.8,
    "bandwidth_frac": 0.85,
    "overhead_s": 2e-6,
    "feed_ratio": 6.0,
    "overlap_frac": 0.3,
    "step_s": 1e-9,
    "split_s": 2e-6,
    "ramp_s": 1e-6,
    "reread_ratio": 1.5,
    "cache_ratio": 0.9,
    "cache_gain_frac": 0.5,
    "gemv_rows": 4.0,
    "gemv_s": 3e-6,
    "gemv_ratio": 0.5,
    "quantise_s": 2e-6,
    "quantise_frac": 0.5,
    "dequantise_ratio": 1.0,
}
SIZES = st.integers(1, 70_000)


def with_constants(device: Device, **constants: float) -> Device:
    """The device with made-up constants and nothing learned."""
    spread = Spread(low_80_ratio=1, high_80_ratio=1, low_95_ratio=1, high_95_ratio=1)
    made_up = {
        ("gemm", format, "tensorrt-llm"): Calibration(
            op="gemm",
            format=format,
            engine="tensorrt-llm",
            origin="device",
            constants=CONSTANTS | constants,
            spread=spread,
        )
        for format in ("bf16", "fp8", "int4_weight_only")
    }
    return replace(device, calibrations=made_up)


def obvious_s(m: int, n: int, k: int, device: Device, format: str, *, is_cold: bool, quantises: bool) -> float:
    """The formula as the documentation writes it, one shape, no shortcuts."""
    c, number = CONSTANTS, get_format(format)
    units, width = device.num_compute_units, device.memory_bandwidth_bytes_per_s
    peak = device.peak_flops_per_s(number.rates)[1]
    bb = number.bytes_per_element
    ba = 2.0 if number.weight_only else bb
    a, b, out = m * k * ba, k * n * bb, m * n * 2.0
    cache = c["cache_ratio"] * device.last_level_cache_bytes
    hit = 0.0 if is_cold else c["cache_gain_frac"] * min(1, max(0, 2 - 2 * (5 * b + a + out) / cache))
    bare = (a + b + out) * (1 - hit) / (c["bandwidth_frac"] * width)
    dram = bare
    if min(a, b) > cache:
        again = max(0, m * n * k * (ba + bb) / math.sqrt(units * 128 * 128) - a - b)
        dram += c["reread_ratio"] * again * min(1, min(a, b) / cache - 1) / (c["bandwidth_frac"] * width)
    dram += c["ramp_s"] * dram / (dram + c["ramp_s"])
    times = []
    for tm, tn in TILE_SETS[int(c["tile_set"])]:
        for s in (1, 2, 4, 8, 16):
            if s > 1 and k < 64 * s:
                continue
            fluid = math.ceil(m / tm) * math.ceil(n / tn) * s / units
            waves = max(1, fluid) + 0.3 * (math.ceil(fluid) - max(1, fluid))
            depth = k / s + 256 / ba
            mma = waves * 2 * tm * tn * depth * units / (c["peak_frac"] * peak)
            feed = waves * (tm * ba + tn * bb) * depth * units / (c["feed_ratio"] * width)
            feed = max(feed, waves * tn * depth * units / (c["dequantise_ratio"] * device.vector_flops_per_s))
            slots = max(1, min(8, 2 * 128 * 128 / (tm * tn)))
            feed = max(feed, c["step_s"] * depth * max(1, waves / slots))
            terms = sorted((mma, feed, dram))
            once = terms[2] + c["overlap_frac"] * (terms[0] + terms[1])
            times.append(once + (c["split_s"] + 8 * s * m * n / (3 * width) if s > 1 else 0))
    best = min(times) + c["overhead_s"]
    if m <= c["gemv_rows"]:
        best = min(best, c["gemv_s"] + max(bare, m * n * k / (c["gemv_ratio"] * device.vector_flops_per_s)))
    return best + (c["quantise_s"] + m * k * (2 + ba) / (c["quantise_frac"] * width) if quantises else 0)


@settings(max_examples=60, deadline=None)
@given(
    m=SIZES,
    n=SIZES,
    k=SIZES,
    is_cold=st.booleans(),
    quantises=st.booleans(),
    format=st.sampled_from(["bf16", "fp8", "int4_weight_only"]),
)
def test_kernel_agrees_with_the_obvious_formula(m, n, k, is_cold, quantises, format):
    device = with_constants(get_device("h100-sxm"))
    op = Gemm(m=m, n=n, k=k, format=format, is_cold=is_cold, quantises_input=quantises)
    quantises = quantises and format != "int4_weight_only"
    expected = obvious_s(m, n, k, device, format, is_cold=is_cold, quantises=quantises)
    assert float(predict(op, device).time_s) == pytest.approx(expected, rel=1e-9)


def test_a_loop_launched_by_the_host_never_beats_a_launch():
    """300 us a launch: small products take that, large ones what they take; in a model none waits for it."""
    device, slow = get_device("h100-sxm"), 300e-6
    on_host = with_constants(device, host_s=slow)
    m = np.array([1, 64, 16384])
    bare = predict(Gemm(m=m, n=8192, k=8192, format="fp8", is_cold=False), with_constants(device)).time_s
    loop = predict(Gemm(m=m, n=8192, k=8192, format="fp8", is_cold=False), on_host).time_s
    cold, inside = (
        predict(Gemm(m=m, n=8192, k=8192, format="fp8"), d).time_s for d in (with_constants(device), on_host)
    )
    assert bare[1] < slow < bare[2]
    np.testing.assert_array_equal(loop, [slow, slow, bare[2]])
    np.testing.assert_array_equal(inside, cold)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("format", ["bf16", "fp8_block", "int8_weight_only"])
def test_arrays_and_numbers_agree(name, format):
    device = get_device(name)
    m, n, k = np.array([1, 17, 300, 5000]), np.array([4096, 64, 1000, 8192]), np.array([4096, 8192, 77, 2048])
    many = predict(Gemm(m=m, n=n, k=k, format=format), device).time_s
    one = [
        float(predict(Gemm(m=a, n=b, k=c, format=format), device).time_s)
        for a, b, c in zip(m.tolist(), n.tolist(), k.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(many, one)


def test_sizes_broadcast_and_batch_multiplies_work():
    device = get_device("h100-sxm")
    timing = predict(Gemm(m=np.arange(1, 4)[:, None], n=np.array([128, 256]), k=512, batch=8, format="bf16"), device)
    assert timing.time_s.shape == (3, 2)
    assert timing.flops[2, 1] == 8 * 2 * 3 * 256 * 512


@pytest.mark.parametrize("name", DEVICES)
def test_zero_rows_take_no_time(name):
    timing = predict(Gemm(m=np.array([0, 1]), n=4096, k=4096, format="bf16"), get_device(name))
    assert timing.time_s[0] == timing.overhead_s[0] == 0.0 < timing.time_s[1]
    assert float(predict(Gemm(m=0, n=8, k=8, format="bf16"), get_device(name)).time_s) == 0.0


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("format", ["bf16", "fp8", "nvfp4", "int8", "int4_weight_only", "q4_k_m", "fp32"])
def test_never_beats_the_roofs_when_weights_are_cold(name, format):
    size = np.unique(np.geomspace(1, 100_000, 30).astype(np.int64))
    timing = predict(Gemm(m=size[:, None, None], n=size[:, None], k=size, format=format), get_device(name))
    assert np.all(timing.time_s >= timing.compute_s * (1 - 1e-12))
    assert np.all(timing.time_s >= timing.memory_s * (1 - 1e-12))
    assert np.all(np.isfinite(timing.time_s))


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("axis", ["m", "n", "k"])
def test_large_products_grow_with_every_size(name, axis):
    """Doubling a size never makes a large product faster (in between, tiles and waves may)."""
    sizes = {"m": 8192, "n": 8192, "k": 8192, axis: 8192 * 2 ** np.arange(8)}
    times = predict(Gemm(**sizes, format="bf16"), get_device(name)).time_s
    assert np.all(np.diff(times) > 0)


def test_warm_weights_are_faster_only_where_the_cache_holds_them():
    device = with_constants(get_device("l40s"))
    sizes = np.array([1024, 16384])
    cold, warm = (predict(Gemm(m=8, n=sizes, k=sizes, format="bf16", is_cold=c), device).time_s for c in (True, False))
    assert warm[0] < cold[0]
    assert warm[1] == cold[1]


def test_leaving_out_the_quantisation_leaves_out_exactly_its_pass():
    device = with_constants(get_device("h100-sxm"))
    whole, fused = (
        float(predict(Gemm(m=512, n=4096, k=4096, format="fp8", quantises_input=q), device).time_s)
        for q in (True, False)
    )
    read_and_write = 512 * 4096 * (2 + 1) / (CONSTANTS["quantise_frac"] * device.memory_bandwidth_bytes_per_s)
    assert whole - fused == pytest.approx(CONSTANTS["quantise_s"] + read_and_write, rel=1e-9)


@pytest.mark.parametrize("format", ["bf16", "fp8", "int4_weight_only"])
def test_times_follow_the_unit_of_time(format):
    """Seconds four times shorter: every rate a quarter, every constant in seconds four times as large."""
    device = get_device("h100-sxm")
    slow = replace(
        device,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s / 4,
        vector_flops_per_s=device.vector_flops_per_s / 4,
        compute_clock_hz=device.compute_clock_hz / 4,
        dense_flops_per_s={k: v / 4 for k, v in device.dense_flops_per_s.items()},
    )
    seconds = {c: v * 4 for c, v in CONSTANTS.items() if c.endswith("_s")}
    size = np.array([1, 3, 64, 1000, 20_000])
    op = Gemm(m=size[:, None, None], n=size[:, None], k=size, format=format)
    before, after = predict(op, with_constants(device)).time_s, predict(op, with_constants(slow, **seconds)).time_s
    np.testing.assert_array_equal(after, 4 * before)


def test_explains_the_tile_and_the_terms():
    terms = explain(Gemm(m=4096, n=4096, k=4096, format="bf16"), get_device("h100-sxm"))
    assert float(terms.tile[0]) >= 64
    assert float(terms.mma_s) > float(terms.dram_s) > 0
    assert 0 < float(terms.tile_fill_frac) <= 1


def test_every_tile_set_is_reachable_and_every_constant_named():
    assert all(tile_set(i).shape[1] == 2 for i in range(len(TILE_SETS)))
    assert len(constants_vector(CONSTANTS)) == len(kernel.CONSTANTS)
    assert len(machine_vector(get_device("tpu-v6e"), get_format("bf16"))) == len(kernel.MACHINE)


def test_a_big_matrix_unit_counts_as_several():
    units = machine_vector(get_device("tpu-v6e"), get_format("bf16"))[0]
    assert units > get_device("tpu-v6e").num_compute_units


@pytest.mark.bench
def test_two_million_predictions_a_second():
    device = with_constants(get_device("h100-sxm"))
    random = np.random.default_rng(0)
    m, n, k = (random.integers(1, 8192, 1_000_000) for _ in range(3))
    op = Gemm(m=m, n=n, k=k, format="bf16")
    predict(op, device)
    best_s = min(_timed(lambda: predict(op, device)) for _ in range(3))
    assert 1_000_000 / best_s > 2_000_000


def _timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[2] / "../shared/data"))
PAGE = Path(__file__).parents[2] / "docs/models/gemm.md"
TABLE = DATA / "kernels/gemm.csv.gz"


def documented() -> dict[tuple[str, str, str], float]:
    """The median error of every group, rule and trees together, as the page says it."""
    lines = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    scored = [line for line in lines if len(line) == 9 and line[3].isdigit() and not line[0].startswith("**")]
    return {(line[0], line[1], line[2]): float(line[7].split("/")[0]) for line in scored}


@pytest.mark.skipif(not TABLE.exists(), reason="the measured tables are not here; set ORRERY_DATA to their folder")
def test_errors_on_unseen_shapes_are_what_the_page_says():
    table = read_table(TABLE)
    table = table.take(sides(table, "gemm") == TEST)
    m, n, k, time_s = (table.numbers(c) for c in ("m", "n", "k", "time_s"))
    names = np.array(["|".join(w) for w in zip(*(table.words(c) for c in ("device", "format", "engine")), strict=True)])
    for key, percent in documented().items():
        at = np.flatnonzero(names == "|".join(key))
        if not len(at):
            continue  # measured in another table
        sizes = {c: v[at].astype(np.int64) for c, v in (("m", m), ("n", n), ("k", k))}
        timing = predict(Gemm(**sizes, format=key[1], is_cold=False), get_device(key[0]), key[2])
        median = 100 * float(np.median(np.abs(timing.time_s / time_s[at] - 1)))
        assert median == pytest.approx(percent, rel=0.1, abs=0.1), key


@pytest.mark.parametrize("name", ["tpu-v4", "tpu-v5e", "tpu-v6e"])
def test_a_compiler_blocks_products_by_on_chip_memory(name):
    """Operands are read again every 4096 columns, not every 128, so 26,624 x 24,576 x 6,144 in 16 bits moves 2 GB once
    and no more than 2 (m n k / 4096) x 2 bytes again; loads hide behind products at 95 % of the peak."""
    device, (m, n, k) = get_device(name), (26624, 24576, 6144)
    terms = explain(Gemm(m=m, n=n, k=k, format="bf16"), device)
    once, rate = 2.0 * (m * k + k * n + m * n), 0.9 * device.memory_bandwidth_bytes_per_s
    assert once / rate < terms.dram_s < (once + 4.0 * m * n * k / 4096.0) / rate + 1e-6
    assert terms.dram_s < terms.mma_s
    assert 0.9 < terms.compute_s / terms.time_s < 0.95
