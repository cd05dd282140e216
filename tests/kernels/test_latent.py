"""Latent-attention rules: shapes of the answer that must hold whatever the constants are."""

from dataclasses import replace

import numpy as np
import pytest
from battery import over
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.catalog.devices import device_names, get_device
from orrery.evidence.kernel_rows import unlearned_device
from orrery.hardware.device import Device
from orrery.kernels.latent import predict_absorb, predict_decode, predict_prefill
from orrery.kernels.ops import AttentionDecode, LatentAbsorb, LatentDecode, LatentPrefill

H200 = unlearned_device("h200-sxm")  # the physics; what trees learned of it need not grow with every size
DEVICES = st.sampled_from(["h200-sxm", "b200", "a100-sxm-80gb", "l40s", "mi300x", "tpu-v5p", "gaudi3", "m1"])


def prompt(tokens: int, context: int = 0, heads: int = 16, device: Device = H200) -> float:
    """Seconds of one prompt on DeepSeek-V3's heads cut over 8."""
    op = LatentPrefill(
        batch=1, query_tokens=tokens, context_tokens=context or tokens, num_heads=heads, format="bf16", kv_format="bf16"
    )
    return float(predict_prefill(op, device).time_s)


def step(
    batch: int, context: int, heads: int = 16, device: Device = H200, kv_format: str = "bf16", query: int = 1
) -> float:
    """Seconds of a decode step on the same heads."""
    op = LatentDecode(
        batch=batch, context_tokens=context, num_heads=heads, format="bf16", kv_format=kv_format, query_tokens=query
    )
    return float(predict_decode(op, device).time_s)


def absorb(part: str, tokens: int, heads: int = 16, device: Device = H200, format: str = "bf16") -> float:
    """Seconds of one of the absorbing products."""
    return float(predict_absorb(LatentAbsorb(part=part, tokens=tokens, num_heads=heads, format=format), device).time_s)


def test_long_prompts_take_quadratic_time() -> None:
    """Four times the work for twice the prompt."""
    assert 3.4 < prompt(65536) / prompt(32768) < 4.05


def test_chunks_cost_at_least_the_whole_prompt() -> None:
    """The same pairs of tokens, more launches."""
    assert prompt(16384) <= sum(prompt(4096, 4096 * (i + 1)) for i in range(4))


def test_decode_is_linear_in_long_contexts() -> None:
    """The latents are read once; nothing else grows."""
    assert step(64, 131072) / step(64, 65536) == pytest.approx(2.0, rel=0.05)


def test_heads_share_the_latents() -> None:
    """Sixteen times the heads cost far less than sixteen times the time, as long as they fit in one block of rows."""
    assert step(256, 8192, heads=16) < 1.3 * step(256, 8192, heads=1)
    assert step(256, 8192, heads=128) > step(256, 8192, heads=16)


def test_the_latent_cache_is_the_point() -> None:
    """DeepSeek-V3's 128 heads read 70 times fewer bytes than plain heads of 128 + 128 would."""
    plain = AttentionDecode(
        batch=1, context_tokens=1000, num_heads=128, num_kv_heads=128, head_size=128, format="bf16", kv_format="bf16"
    )
    assert 2 * plain.num_kv_heads * plain.head_size / 576 > 50


def test_times_grow_with_every_size() -> None:
    """Far enough apart that a better-filled wave cannot win."""
    for times in (
        [step(b, 8192) for b in (4, 16, 64, 256)],
        [step(64, c) for c in (1024, 4096, 16384, 65536)],
        [step(64, 8192, query=q) for q in (1, 2, 4, 16)],
        [prompt(t) for t in (512, 2048, 8192)],
        [prompt(4096, heads=h) for h in (1, 8, 64)],
        [absorb("query", t, heads=128) for t in (1, 512, 8192)],
        [absorb("value", 512, heads=h) for h in (1, 16, 128)],
    ):
        assert times == sorted(times)


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 1000),
    context=st.integers(1, 200000),
    heads=st.sampled_from([1, 16, 128]),
    name=DEVICES,
    kv=st.sampled_from(["bf16", "fp8"]),
)
def test_cold_decode_never_beats_the_datasheet(batch: int, context: int, heads: int, name: str, kv: str) -> None:
    """Latents that come from memory take their bytes over the bandwidth, at least."""
    op = LatentDecode(batch=batch, context_tokens=context, num_heads=heads, format="bf16", kv_format=kv)
    timing = predict_decode(op, get_device(name))
    assert timing.time_s >= max(timing.compute_s, timing.memory_s) * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.integers(1, 30000),
    heads=st.sampled_from([1, 16, 128]),
    name=DEVICES,
    part=st.sampled_from(["query", "value"]),
)
def test_products_never_beat_the_datasheet(tokens: int, heads: int, name: str, part: str) -> None:
    """Cold products are bounded by the matrix peak and by the bandwidth."""
    timing = predict_absorb(LatentAbsorb(part=part, tokens=tokens, num_heads=heads, format="bf16"), get_device(name))
    assert timing.time_s >= max(timing.compute_s, timing.memory_s) * (1 - 1e-9)
    op = LatentPrefill(
        batch=1, query_tokens=tokens, context_tokens=tokens, num_heads=heads, format="bf16", kv_format="bf16"
    )
    prefill = predict_prefill(op, get_device(name))
    assert prefill.time_s >= prefill.compute_s * (1 - 1e-9)


@over(device_names())
def test_every_device_has_an_answer(name: str) -> None:
    """By inheritance, for every device in the catalogue."""
    device = get_device(name)
    assert 0 < prompt(2048, device=device) < 30
    assert 0 < step(8, 2048, device=device, kv_format="fp8") < 3
    assert 0 < absorb("query", 64, device=device, format="fp8") < 1
    assert 0 < absorb("value", 64, device=device) < 1


def test_arrays_equal_numbers() -> None:
    """One op of arrays says what many ops of numbers say."""
    batch = np.array([1, 7, 300])
    op = LatentDecode(batch=batch, context_tokens=3000, num_heads=16, format="bf16", kv_format="bf16")
    one = [predict_decode(replace(op, batch=int(b)), H200).time_s for b in batch]
    np.testing.assert_allclose(predict_decode(op, H200).time_s, one, rtol=1e-12)
    products = LatentAbsorb(part="value", tokens=batch, num_heads=16, format="bf16")
    one = [predict_absorb(replace(products, tokens=int(b)), H200).time_s for b in batch]
    np.testing.assert_allclose(predict_absorb(products, H200).time_s, one, rtol=1e-12)
    prompts = LatentPrefill(
        batch=batch, query_tokens=300, context_tokens=500, num_heads=16, format="bf16", kv_format="bf16"
    )
    one = [predict_prefill(replace(prompts, batch=int(b)), H200).time_s for b in batch]
    np.testing.assert_allclose(predict_prefill(prompts, H200).time_s, one, rtol=1e-12)


def test_nothing_costs_nothing() -> None:
    """No token, no time."""
    assert step(0, 10) == prompt(0, 1) == absorb("query", 0) == 0.0


def test_times_follow_the_unit_of_time() -> None:
    """Dimensions: a second four times as long gives, bit for bit, four times the number."""
    calibrations = {
        key: replace(c, constants={n: v * 4.0 if n.endswith("_s") else v for n, v in c.constants.items()})
        for key, c in H200.calibrations.items()
    }
    slow = replace(
        H200,
        memory_bandwidth_bytes_per_s=H200.memory_bandwidth_bytes_per_s / 4,
        dense_flops_per_s={k: v / 4 for k, v in H200.dense_flops_per_s.items()},
        vector_flops_per_s=H200.vector_flops_per_s / 4,
        compute_clock_hz=H200.compute_clock_hz / 4,
        calibrations=calibrations,
    )
    assert step(33, 3000, device=slow) == 4.0 * step(33, 3000)
    assert prompt(3000, device=slow) == 4.0 * prompt(3000)
    assert absorb("query", 300, device=slow) == 4.0 * absorb("query", 300)
