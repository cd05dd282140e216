"""Attention rules: shapes of the answer that must hold whatever the constants are."""

import math
from dataclasses import replace

import numpy as np
import pytest
from battery import over
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.catalog.devices import device_names, get_device
from orrery.hardware.device import Device
from orrery.kernels.attention import _kernel as kernel
from orrery.kernels.attention import predict_decode, predict_prefill, prefill
from orrery.kernels.attention.choice import choose
from orrery.kernels.ops import AttentionDecode, AttentionPrefill

H100 = get_device("h100-sxm")


def prompt(
    tokens: int, context: int = 0, device: Device = H100, *, learned: bool = True, engine: str = "", **other: int
) -> float:
    """Seconds of a prompt (or of the last ``tokens`` of ``context``) on a Llama-70B-like layer cut over 8."""
    sizes = {"batch": 1, "num_heads": 8, "num_kv_heads": 1, "head_size": 128} | other
    op = AttentionPrefill(
        query_tokens=tokens, context_tokens=context or tokens, format="bf16", kv_format="bf16", **sizes
    )
    return float(predict_prefill(op, device, engine, learned).time_s)


def step(
    batch: int, context: int, device: Device = H100, *, learned: bool = True, kv_format: str = "bf16", **other: int
) -> float:
    """Seconds of a decode step on the same layer."""
    sizes = {"num_heads": 8, "num_kv_heads": 1, "head_size": 128} | other
    op = AttentionDecode(batch=batch, context_tokens=context, format="bf16", kv_format=kv_format, **sizes)
    return float(predict_decode(op, device, "", learned).time_s)


def test_long_prompts_take_quadratic_time() -> None:
    """Four times the work for twice the prompt, once the launch and the pass over the rows are small beside it."""
    for tokens in (16384, 65536, 262144):
        assert 3.4 < prompt(2 * tokens, learned=False) / prompt(tokens, learned=False) < 4.05


@pytest.mark.parametrize("engine", ["tensorrt-llm", "sglang"])
@pytest.mark.parametrize("chunks", [2, 4, 16])
def test_chunks_cost_at_least_the_whole_prompt(chunks: int, engine: str) -> None:
    """The same pairs of tokens are multiplied, plus more launches and emptier units."""
    whole = prompt(16384, engine=engine, learned=False)
    size = 16384 // chunks
    parts = sum(prompt(size, size * (i + 1), engine=engine, learned=False) for i in range(chunks))
    assert whole <= parts < 4 * whole + chunks * 40e-6


def test_later_chunks_cost_more() -> None:
    """A chunk reads everything before it."""
    times = [prompt(512, context, learned=False) for context in (512, 4096, 32768, 262144)]
    assert times == sorted(times)
    assert times[3] / times[2] == pytest.approx(8.0, rel=0.15)


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.integers(1, 40000),
    batch=st.integers(1, 300),
    heads=st.sampled_from([1, 4, 8, 32, 96]),
    size=st.sampled_from([64, 96, 128, 192, 256, 512]),
    window=st.sampled_from([0, 128, 4096]),
    device=st.sampled_from(["h100-sxm", "b200", "l40s", "mi300x", "tpu-v5p", "gaudi3", "m2-ultra", "t4"]),
)
def test_prefill_never_beats_the_datasheet(
    tokens: int, batch: int, heads: int, size: int, window: int, device: str
) -> None:
    """The matrix peak bounds every answer, learned or not."""
    op = AttentionPrefill(
        batch=batch,
        query_tokens=tokens,
        context_tokens=tokens,
        num_heads=heads,
        num_kv_heads=max(1, heads // 4),
        head_size=size,
        window_tokens=window,
        format="bf16",
        kv_format="bf16",
    )
    timing = predict_prefill(op, get_device(device))
    assert math.isfinite(timing.time_s)
    assert timing.time_s >= timing.compute_s * (1 - 1e-9)
    assert timing.time_s >= 0.5 * timing.overhead_s > 0


@settings(max_examples=60, deadline=None)
@given(
    context=st.integers(1, 300000),
    batch=st.integers(1, 2000),
    group=st.sampled_from([1, 4, 7, 16, 64]),
    kv_heads=st.sampled_from([1, 8]),
    size=st.sampled_from([64, 128, 256]),
    kv=st.sampled_from(["bf16", "fp8"]),
    device=st.sampled_from(["h100-sxm", "a100-sxm-80gb", "l40s", "mi300x", "tpu-v5e", "gaudi2", "m1", "v100-sxm-32gb"]),
)
def test_cold_decode_never_beats_the_datasheet(
    context: int, batch: int, group: int, kv_heads: int, size: int, kv: str, device: str
) -> None:
    """A cache that comes from memory takes its bytes over the bandwidth, at least."""
    op = AttentionDecode(
        batch=batch,
        context_tokens=context,
        num_heads=group * kv_heads,
        num_kv_heads=kv_heads,
        head_size=size,
        format="bf16",
        kv_format=kv,
    )
    timing = predict_decode(op, get_device(device))
    assert timing.time_s >= max(timing.compute_s, timing.memory_s) * (1 - 1e-9)


def test_time_grows_with_every_size() -> None:
    """Physics alone, far enough apart that a better-filled wave cannot win."""
    for times in (
        [prompt(2048, batch=b, learned=False) for b in (1, 4, 16, 64)],
        [prompt(2048, num_heads=h, num_kv_heads=1, learned=False) for h in (8, 16, 32, 64)],
        [prompt(4096, head_size=d, learned=False) for d in (64, 96, 128, 192, 256, 512)],
        [step(b, 8192, learned=False) for b in (4, 16, 64, 256)],
        [step(64, c, learned=False) for c in (1024, 4096, 16384, 65536)],
        [step(64, 8192, num_kv_heads=k, num_heads=64, learned=False) for k in (2, 4, 8, 16)],
    ):
        assert times == sorted(times)


def test_decode_is_linear_in_long_contexts() -> None:
    """The cache is read once; nothing else grows."""
    assert step(64, 131072, learned=False) / step(64, 65536, learned=False) == pytest.approx(2.0, rel=0.05)


def test_a_window_is_cheaper() -> None:
    """Keys outside the window are neither read nor multiplied."""
    assert prompt(32768, window_tokens=4096, learned=False) < 0.5 * prompt(32768, learned=False)
    assert step(64, 65536, window_tokens=4096, learned=False) < 0.5 * step(64, 65536, learned=False)


def test_a_narrow_cache_is_read_faster() -> None:
    """8-bit keys and values are half the bytes."""
    ratio = step(128, 32768, kv_format="fp8") / step(128, 32768, kv_format="bf16")
    assert 0.45 < ratio < 0.8


def test_verifying_a_few_tokens_costs_little_more_than_one() -> None:
    """The cache is read once for all of them, as long as they fit in one matrix tile."""
    assert step(64, 16384, learned=False) <= step(64, 16384, query_tokens=2, learned=False)
    assert step(64, 16384, query_tokens=2, learned=False) < 1.2 * step(64, 16384, learned=False)


def test_heads_without_groups_are_read_by_another_kernel() -> None:
    """64 query heads on one key/value head run head by head where a kernel groups at most 32: slower than two of 32."""
    assert step(256, 4096, num_heads=64, num_kv_heads=1, learned=False) > 2 * step(
        256, 4096, num_heads=32, num_kv_heads=1, learned=False
    )


def test_nothing_costs_nothing() -> None:
    """No sequence, no time."""
    assert step(0, 100) == 0.0
    assert prompt(0, 1) == 0.0


def test_arrays_equal_numbers() -> None:
    """One op of arrays says what many ops of numbers say."""
    tokens = np.array([[1, 100, 3000], [5000, 16384, 33333]])
    op = AttentionPrefill(
        batch=2,
        query_tokens=tokens,
        context_tokens=tokens + 7,
        num_heads=32,
        num_kv_heads=8,
        head_size=128,
        format="bf16",
        kv_format="bf16",
    )
    many = predict_prefill(op, H100).time_s
    assert many.shape == (2, 3)
    one = [
        predict_prefill(replace(op, query_tokens=int(t), context_tokens=int(t) + 7), H100).time_s for t in tokens.flat
    ]
    np.testing.assert_allclose(many.ravel(), one, rtol=1e-12)
    steps = AttentionDecode(
        batch=4, context_tokens=tokens, num_heads=32, num_kv_heads=8, head_size=128, format="bf16", kv_format="bf16"
    )
    one = [predict_decode(replace(steps, context_tokens=int(t)), H100).time_s for t in tokens.flat]
    np.testing.assert_allclose(predict_decode(steps, H100).time_s.ravel(), one, rtol=1e-12)


def test_visible_pairs_are_counted_exactly() -> None:
    """Against the loop over every query."""
    for query, context, window in ((5, 5, 0), (5, 9, 0), (7, 7, 3), (4, 20, 6), (9, 12, 11), (3, 3, 8)):
        past = context - query
        pairs = sum(min(past + i + 1, window or past + i + 1) for i in range(query))
        assert kernel.visible(query, context, window, True) == pairs


def tile_blocks(query: int, context: int, window: int, tile: int, key_tile: int) -> tuple[float, float]:
    """Key blocks of all tiles and of the longest, by looking at every tile."""
    blocks = []
    for first in range(0, query, tile):
        past = context - query
        newest = past + min(query, first + tile)
        oldest = max(0, past + first - window + 1) if window else 0
        blocks.append(-(-newest // key_tile) - oldest // key_tile)
    return float(sum(blocks)), float(max(blocks))


@pytest.mark.parametrize("window", [0, 128, 1000])
def test_prefill_equals_the_sum_over_tiles(window: int) -> None:
    """The closed form of the kernel against the loop over tiles: a machine where only blocks take time."""
    machine = np.array([1e12, 1e30, 1.0, 1e30, 0.0, 2.0, 2.0])
    constants = prefill.vector(
        dict.fromkeys(prefill.CONSTANTS[:10], 1.0)
        | {"launch_s": 0.0, "entry_frac": 1e30, "tile_blocks": 0.0, "edge_blocks": 0.0}
        | {"query_tile": 128.0, "key_tile": 64.0, "packs_groups": 0.0, "row_granule": 128.0}
    )
    block = 4.0 * 128 * 64 * 128 / 1e12
    for query, context in ((128, 128), (1000, 1000), (4096, 4096), (512, 5000), (77, 1333)):
        time = kernel.prefill_scalar(4, query, context, 2, 2, 128, 128, window, True, machine, constants)[0]
        total, longest = tile_blocks(query, context, window, 128, 64)
        fluid = 8 * total * block
        assert time == pytest.approx((fluid**4 + (longest * block) ** 4) ** 0.25, rel=0.02)


def slower(device: Device, factor: float) -> Device:
    """The same device with every second ``factor`` times as long, in its datasheet and in its constants."""
    calibrations = {
        key: replace(c, constants={n: v * factor if n.endswith("_s") else v for n, v in c.constants.items()})
        for key, c in device.calibrations.items()
    }
    return replace(
        device,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s / factor,
        dense_flops_per_s={k: v / factor for k, v in device.dense_flops_per_s.items()},
        vector_flops_per_s=device.vector_flops_per_s / factor,
        compute_clock_hz=device.compute_clock_hz / factor,
        calibrations=calibrations,
    )


def test_times_follow_the_unit_of_time() -> None:
    """Dimensions: a second four times as long gives, bit for bit, a quarter of the number."""
    slow = slower(H100, 4.0)
    for tokens in (1, 100, 5000):
        assert prompt(tokens, device=slow) == 4.0 * prompt(tokens)
        assert step(tokens, 3000, slow) == 4.0 * step(tokens, 3000)


@over(device_names())
def test_every_device_has_an_answer(name: str) -> None:
    """By inheritance, for every device in the catalogue."""
    device = get_device(name)
    assert 0 < prompt(2048, device=device) < 30
    assert 0 < step(8, 2048, device, kv_format="fp8") < 3


def test_the_nearest_machine_answers() -> None:
    """vLLM's 8-bit cache under 16-bit prompts was measured on H100; of A100 nothing with an 8-bit cache was."""
    assert choose(H100, "attention_prefill", "bf16", "fp8", "vllm").calibration.format == "bf16+fp8"
    assert choose(get_device("a100-sxm-80gb"), "attention_prefill", "bf16", "fp8", "").calibration.format == "bf16+bf16"
    assert choose(get_device("l40s"), "attention_prefill", "bf16", "fp8", "").calibration.format == "bf16+fp8"
    assert choose(H100, "attention_prefill", "bf16", "bf16", "vllm").calibration.origin == "device"
    assert choose(get_device("h20"), "attention_prefill", "bf16", "bf16", "vllm").calibration.origin == "generation"
    own = choose(H100, "attention_decode", "bf16", "bf16", "vllm").calibration.spread
    borrowed = choose(H100, "attention_decode", "bf16", "bf16", "sglang").calibration.spread
    assert borrowed.high_80_ratio > own.high_80_ratio
